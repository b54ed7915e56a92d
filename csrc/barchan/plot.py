"""Plots of a bake as one SVG page: energy, grains, speed of the bake, and the force on a body or collider.

Comes in: a cache folder with stats.csv and loads.csv, as the add-on writes them. Goes out: the text of the page. No library: lines,
axes and numbers are drawn here.
"""

import csv
import html
import math
import os

STATS, LOADS, OUT = "stats.csv", "loads.csv", "plots.svg"
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, GAP = 460, 260, 64, 16, 34, 44, 14  # pixels of one plot, and between two
MARK = "<!-- plots of a Barchan bake -->"  # by which our own file is known
COLOURS = ("#c2703d", "#2f6f9f", "#4d8b57", "#7a5195")


def read_rows(folder, name):
    """The whole lines of a CSV file as dicts; [] when it is not there."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace", newline="") as stream:
            text = stream.read()
    except FileNotFoundError:
        return []
    rows = list(csv.DictReader(text[: text.rfind("\n") + 1].splitlines()))
    return [row for row in rows if None not in row.values() and None not in row]


def ticks(low, high, count=5):
    """Round numbers that span low to high."""
    if not high > low:
        low, high = low - 0.5, low + 0.5
    raw = (high - low) / count
    scale = 10.0 ** math.floor(math.log10(raw))
    step = next(s * scale for s in (1, 2, 2.5, 5, 10) if s * scale >= raw * 0.999)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [step * k for k in range(first, last + 1)]


def number(value):
    """1500000 -> 1.5M."""
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= scale:
            return "%.4g%s" % (value / scale, unit)
    return "%.4g" % value


def draw_plot(title, y_label, lines, x0, y0):
    """SVG of one plot at a place (pixels). lines: list of (name, xs, ys)."""
    out = ['<g transform="translate(%d %d)">' % (x0, y0)]
    out.append('<text x="%d" y="20" class="title">%s</text>' % (LEFT, html.escape(title)))
    points = [(x, y) for _name, xs, ys in lines for x, y in zip(xs, ys) if math.isfinite(x) and math.isfinite(y)]
    if not points:
        out.append('<text x="%d" y="%d" class="tick">no lines in the cache</text></g>' % (LEFT, HEIGHT // 2))
        return "\n".join(out)
    x_ticks = ticks(min(x for x, _y in points), max(x for x, _y in points))
    y_ticks = ticks(min(0.0, min(y for _x, y in points)), max(y for _x, y in points))

    def at(x, y):
        u = (x - x_ticks[0]) / (x_ticks[-1] - x_ticks[0])
        v = (y - y_ticks[0]) / (y_ticks[-1] - y_ticks[0])
        return LEFT + u * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - v * (HEIGHT - TOP - BOTTOM)

    for tick in y_ticks:
        x, y = at(x_ticks[0], tick)
        out.append('<line x1="%.1f" y1="%.1f" x2="%d" y2="%.1f" class="grid"/>' % (x, y, WIDTH - RIGHT, y))
        out.append('<text x="%.1f" y="%.1f" class="tick" text-anchor="end">%s</text>' % (x - 6, y + 4, number(tick)))
    for tick in x_ticks:
        x, y = at(tick, y_ticks[0])
        out.append('<text x="%.1f" y="%.1f" class="tick" text-anchor="middle">%s</text>' % (x, y + 16, number(tick)))
    out.append('<text x="%.1f" y="%d" class="tick" text-anchor="middle">time / s</text>' % ((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out.append('<text transform="translate(14 %.1f) rotate(-90)" class="tick" text-anchor="middle">%s</text>' % (middle, html.escape(y_label)))
    for index, (name, xs, ys) in enumerate(lines):
        path = " ".join("%.1f,%.1f" % at(x, y) for x, y in zip(xs, ys) if math.isfinite(x) and math.isfinite(y))
        colour = COLOURS[index % len(COLOURS)]
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="1.6" stroke-linejoin="round"/>' % (path, colour))
        if len(lines) > 1:  # beside the title, where no line can come
            x = WIDTH - RIGHT - 92 * (len(lines) - index)
            out.append('<line x1="%d" y1="16" x2="%d" y2="16" stroke="%s" stroke-width="2"/>' % (x, x + 16, colour))
            out.append('<text x="%d" y="20" class="tick">%s</text>' % (x + 20, html.escape(name)))
    out.append("</g>")
    return "\n".join(out)


def column(rows, name):
    return [float(row[name]) for row in rows]


def load_names(folder):
    """Bodies and colliders that loads.csv tells of, in the order of the file."""
    return list(dict.fromkeys(row["object"] for row in read_rows(folder, LOADS)))


def page(folder, of=None):
    """The SVG text of a cache folder's plots. of: the body or collider whose force is drawn; None = the first one.
    ValueError with the sentence when there is nothing to draw."""
    stats = sorted(read_rows(folder, STATS), key=lambda row: int(row["frame"]))
    loads = read_rows(folder, LOADS)
    if not stats and not loads:
        raise ValueError("There are no statistics in '%s': bake with this version of Barchan first." % folder)
    names = list(dict.fromkeys(row["object"] for row in loads))
    if of is not None and of not in names:
        known = ", ".join("'%s'" % name for name in names) or "none"
        raise ValueError("There are no loads of '%s' in '%s'; it has %s." % (of, folder, known))
    seconds = column(stats, "seconds")
    moved = [row for row in stats if float(row["grain_steps"]) > 0.0]
    plots = [
        ("Energy", "energy / J", [
            ("kinetic", seconds, column(stats, "kinetic_energy")),
            ("potential", seconds, column(stats, "potential_energy")),
        ]),
        ("Grains", "grains", [
            ("there", seconds, column(stats, "grains")),
            ("asleep", seconds, column(stats, "asleep")),
        ]),
        ("Speed of the bake", "grain-steps / s", [("speed", column(moved, "seconds"), column(moved, "grain_steps"))]),
    ]
    if names:
        of = of or names[0]
        rows = sorted((row for row in loads if row["object"] == of), key=lambda row: int(row["frame"]))
        plots.append(("Force on %s" % of, "force / N", [
            (axis, column(rows, "seconds"), column(rows, "f" + axis)) for axis in "xyz"
        ]))
    rows = (len(plots) + 1) // 2
    width, height = 2 * WIDTH + GAP, rows * (HEIGHT + GAP)
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">' % (width, height, width, height),
        "<style>text { font-family: sans-serif; fill: #333 } .title { font-size: 14px; font-weight: bold } "
        ".tick { font-size: 11px } .grid { stroke: #ddd; stroke-width: 1 }</style>",
        '<rect width="%d" height="%d" fill="white"/>' % (width, height),
    ]
    for index, (title, label, lines) in enumerate(plots):
        parts.append(draw_plot(title, label, lines, (index % 2) * (WIDTH + GAP), (index // 2) * (HEIGHT + GAP)))
    return MARK + "\n" + "\n".join(parts) + "\n</svg>\n"


def is_ours(path):
    """True for a file that save() wrote."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.readline(200).rstrip("\n") == MARK
    except OSError:
        return False


def save(folder, out=None, of=None):
    """Writes page() to out, plots.svg in the folder where none is given; the path. What was there stays until it is whole."""
    text = page(folder, of)
    path = out or os.path.join(folder, OUT)
    if out is None and os.path.exists(path) and not is_ours(path):
        raise ValueError("The file '%s' is not Barchan's and would be overwritten; move it away." % path)
    partial = path + ".tmp"
    with open(partial, "w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)
    os.replace(partial, path)
    return path


def add_command(commands):
    parser = commands.add_parser("plot", help="draw energy, grains, speed and forces of a bake as an SVG page")
    parser.add_argument("folder", metavar="CACHE", help="cache folder, as the Barchan panel shows it")
    parser.add_argument("--out", metavar="FILE.svg", help="where the page goes (default: plots.svg in the cache folder)")
    parser.add_argument("--object", metavar="NAME", help="body or collider whose force is drawn (default: the first one)")
    parser.set_defaults(run=run)


def run(arguments):
    print(save(arguments.folder, arguments.out, arguments.object))
