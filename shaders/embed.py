"""Shader files -> one C header of strings. Run by meson: embed.py OUTPUT LAYOUT COMMON FILE...

layout.h and common.glsl become one string, each .comp, .vert and .frag file becomes another. A .glsl file is put where a shader says #include
"file.glsl". Lines of the first file count from 100001, of the second from 200001, of a shader from 300001, of what it includes from
400001, 500001, ...: Mesa forgets the file's number of a #line, but not the line. gpu.c takes them apart, so that a driver's
complaint is led back to file and line, and puts #version in front. The order of the arguments is the running order of the passes.

With --texts before OUTPUT: only the .comp files, as test_shaders[], for the C tests.
"""

import os
import re
import sys

LINES_PER_FILE = 100000  # gpu.c knows it too
STAGES = (".comp", ".vert", ".frag")


def body(path, number, included=()):
    """The file's lines for GLSL: headers of C are left out, files of ours come in, the lines keep their numbers."""
    with open(path, encoding="ascii") as file:
        lines = file.read().split("\n")
    if any(re.match(r"\s*#\s*version\b", line) for line in lines):
        raise SystemExit("%s: #version is added by gpu.c; take it out." % path)
    kept = ["#line %d" % (number * LINES_PER_FILE + 1)]
    for index, line in enumerate(lines):
        wanted = re.match(r'\s*#\s*include\s*"(.*)"', line)
        if wanted and wanted.group(1) in included:
            kept += included[wanted.group(1)] + ["#line %d" % (number * LINES_PER_FILE + index + 2)]
        elif wanted:
            raise SystemExit("%s: meson.build lists no %s among the shaders." % (path, wanted.group(1)))
        else:
            kept += ["" if re.match(r"\s*#\s*include\s*<", line) else line.rstrip()]
    return kept


def literal(line):
    return '\t"%s\\n"' % line.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")


def main(output, layout, common, *files, is_test=False):
    shaders = [path for path in files if path.endswith(STAGES)]
    included = {}
    for path in files:
        if path not in shaders:
            included[os.path.basename(path)] = body(path, len(included) + 4, included)
    text = ["// Made by shaders/embed.py."]
    if not is_test:
        text += ["static const char shader_prelude[] ="]
        text += [literal(line) for line in body(layout, 1) + body(common, 2)]
        text[-1] += ";"
    for index, path in enumerate(shaders):
        text += ["static const char shader_text_%d[] =" % index]
        text += [literal(line) for line in body(path, 3, included)[1:]]
        text[-1] += ";"
    text += ["static const struct { const char *name; const char *text; } %s[] = {" % ("test_shaders" if is_test else "shaders")]
    text += ['\t{"%s", shader_text_%d},' % (os.path.basename(path), index) for index, path in enumerate(shaders)]
    text += ["};", ""]
    if not is_test:
        names = ['"%s"' % name for name in included]
        text += ["static const char *const shader_includes[] = {%s};" % ", ".join(names + ["NULL"]), ""]
    with open(output, "w", encoding="ascii", newline="\n") as file:
        file.write("\n".join(text))


if __name__ == "__main__":
    if sys.argv[1] == "--texts":
        main(*sys.argv[2:], is_test=True)
    else:
        main(*sys.argv[1:])
