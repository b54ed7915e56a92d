"""Shader files -> one C header of strings. Run by meson: embed.py OUTPUT LAYOUT COMMON SHADER...

layout.h and common.glsl become one string, each shader becomes another. Lines of the first file count from 100001, of the
second from 200001, of a shader from 300001: Mesa forgets the file's number of a #line, but not the line. gpu.c takes them apart,
so that a driver's complaint is led back to file and line, and puts #version in front. The order of the arguments is the running
order of the passes.
"""

import os
import re
import sys

LINES_PER_FILE = 100000  # gpu.c knows it too


def body(path, number):
    """The file's lines for GLSL: headers of C are left out, the lines keep their numbers."""
    with open(path, encoding="ascii") as file:
        lines = file.read().split("\n")
    if any(re.match(r"\s*#\s*version\b", line) for line in lines):
        raise SystemExit("%s: #version is added by gpu.c; take it out." % path)
    kept = ["" if re.match(r"\s*#\s*include\s*<", line) else line.rstrip() for line in lines]
    bad = [line for line in kept if re.match(r"\s*#\s*include\b", line)]
    if bad:
        raise SystemExit('%s: "%s": every shader has layout.h and common.glsl in front; take it out.' % (path, bad[0]))
    return ["#line %d" % (number * LINES_PER_FILE + 1)] + kept


def literal(line):
    return '\t"%s\\n"' % line.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")


def main(output, layout, common, *shaders):
    text = ["// Made by shaders/embed.py.", "static const char shader_prelude[] ="]
    text += [literal(line) for line in body(layout, 1) + body(common, 2)]
    text[-1] += ";"
    for index, path in enumerate(shaders):
        text += ["static const char shader_text_%d[] =" % index]
        text += [literal(line) for line in body(path, 3)[1:]]
        text[-1] += ";"
    text += ["static const struct { const char *name; const char *text; } shaders[] = {"]
    text += ['\t{"%s", shader_text_%d},' % (os.path.basename(path), index) for index, path in enumerate(shaders)]
    text += ["};", ""]
    with open(output, "w", encoding="ascii", newline="\n") as file:
        file.write("\n".join(text))


if __name__ == "__main__":
    main(*sys.argv[1:])
