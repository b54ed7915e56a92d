"""Results -> results.json, pictures and report.html.

Comes in: results. Goes out: files in a folder. matplotlib draws the pictures as PNG; without it they are SVG, drawn here.
"""

import html
import json
import math
import os

import numpy as np

COLOURS = ("#1f6f8b", "#c8553d", "#6a994e", "#7b5ea7", "#b8860b", "#444444", "#d81b60", "#00897b")


def number(value):
    return None if value is None or not math.isfinite(value) else value


def as_data(results, about):
    """What results.json holds."""
    rows = []
    for result in results:
        experiment = result.experiment
        checks = [
            {
                "name": check.name,
                "what": check.what,
                "unit": check.unit,
                "low": number(check.low),
                "high": number(check.high),
                "source": check.source,
                "mean": None if found is None else number(found.mean),
                "half_width_95": None if found is None else found.half_width,
                "seeds": None if found is None else found.count,
                "is_met": is_met,
            }
            for check, found, is_met in result.outcomes()
        ]
        numbers = {
            name: {"mean": number(value.mean), "half_width_95": value.half_width, "seeds": value.count}
            if hasattr(value, "half_width")
            else number(float(value))
            for name, value in result.values.items()
        }
        rows.append(
            {
                "name": experiment.name,
                "title": experiment.title,
                "source": experiment.source,
                "method": experiment.method,
                "is_met": result.is_met,
                "error": result.error,
                "seconds": round(result.seconds, 2),
                "checks": checks,
                "numbers": numbers,
                "notes": result.notes,
                "plots": [plot.name for plot in result.plots],
            }
        )
    return {**about, "is_met": all(result.is_met for result in results), "experiments": rows}


def colours(plot):
    """One per series; a series that is named like the one before it, and more, is its theory: the same colour."""
    found, last, index = [], None, -1
    for label, _, _, _ in plot.series:
        index += last is None or not label.startswith(last + ",")
        last = last if last is not None and label.startswith(last + ",") else label
        found.append(COLOURS[index % len(COLOURS)])
    return found


def drawer():
    """A function that draws a Plot into a file, and its suffix."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        return draw_svg, ".svg"

    def draw(plot, path):
        figure, axes = pyplot.subplots(figsize=(5.2, 3.6), dpi=100)
        for (label, x, y, kind), colour in zip(plot.series, colours(plot), strict=True):
            style = {"line": "-", "dash": "--", "points": "o"}[kind]
            axes.plot(x, y, style, color=colour, label=label, markersize=4, linewidth=1.3)
        axes.set(title=plot.title, xlabel=plot.x, ylabel=plot.y)
        for is_log, scale, axis in ((plot.log_x, axes.set_xscale, axes.xaxis), (plot.log_y, axes.set_yscale, axes.yaxis)):
            if is_log:
                scale("log")
                axis.set_minor_formatter("")  # else labels run into each other
        axes.grid(alpha=0.25)
        if len(plot.series) > 1:
            axes.legend(fontsize=7)
        figure.tight_layout()
        figure.savefig(path, metadata={"Software": None})
        pyplot.close(figure)

    return draw, ".png"


def draw_svg(plot, path):
    width, height, left, bottom, top = 520, 360, 62, 46, 30

    def scaled(values, is_log):
        values = np.asarray(values, float)
        return np.log10(np.where(values > 0, values, np.nan)) if is_log else values

    all_x = np.concatenate([np.ravel(scaled(x, plot.log_x)) for _, x, _, _ in plot.series])
    all_y = np.concatenate([np.ravel(scaled(y, plot.log_y)) for _, _, y, _ in plot.series])
    low_x, high_x = np.nanmin(all_x), np.nanmax(all_x)
    low_y, high_y = np.nanmin(all_y), np.nanmax(all_y)
    high_x, high_y = high_x + (high_x == low_x), high_y + (high_y == low_y)

    def place(x, y):
        px = left + (scaled(x, plot.log_x) - low_x) / (high_x - low_x) * (width - left - 12)
        py = height - bottom - (scaled(y, plot.log_y) - low_y) / (high_y - low_y) * (height - bottom - top)
        return np.column_stack([px, py])

    lines = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">' % (width, height)]
    lines.append('<rect width="100%" height="100%" fill="white"/>')
    lines.append('<text x="%d" y="18" font-size="13">%s</text>' % (left, html.escape(plot.title)))
    frame = (left, top, width - left - 12, height - bottom - top)
    lines.append('<rect x="%g" y="%g" width="%g" height="%g" fill="none" stroke="#999"/>' % frame)
    for k in range(5):
        share = k / 4
        for low, high, is_log, is_x in ((low_x, high_x, plot.log_x, True), (low_y, high_y, plot.log_y, False)):
            value = low + share * (high - low)
            text = "%.3g" % (10**value if is_log else value)
            if is_x:
                at = (left + share * (width - left - 12), height - bottom + 14, "middle")
            else:
                at = (left - 4, height - bottom - share * (height - bottom - top) + 4, "end")
            lines.append('<text x="%g" y="%g" text-anchor="%s">%s</text>' % (*at, text))
    lines.append('<text x="%g" y="%g" text-anchor="middle">%s</text>' % (width / 2, height - 10, html.escape(plot.x)))
    lines.append('<text transform="translate(14 %g) rotate(-90)" text-anchor="middle">%s</text>' % (height / 2, html.escape(plot.y)))
    for i, ((label, x, y, kind), colour) in enumerate(zip(plot.series, colours(plot), strict=True)):
        points = [p for p in place(np.ravel(x), np.ravel(y)) if np.isfinite(p).all()]
        if kind == "points":
            lines += ['<circle cx="%.1f" cy="%.1f" r="2.6" fill="%s"/>' % (*p, colour) for p in points]
        elif points:
            path_text = " ".join("%.1f,%.1f" % tuple(p) for p in points)
            dash = ' stroke-dasharray="5 3"' if kind == "dash" else ""
            lines.append('<polyline points="%s" fill="none" stroke="%s"%s/>' % (path_text, colour, dash))
        lines.append('<text x="%d" y="%d" fill="%s">%s</text>' % (width - 190, top + 14 + 13 * i, colour, html.escape(label)))
    lines.append("</svg>")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def shown(value):
    return "-" if value is None else "%.4g" % value


def band(check):
    low, high = check["low"], check["high"]
    if low is None or high is None:
        return ("at least %s" % shown(low)) if high is None else ("at most %s" % shown(high))
    return "%s to %s" % (shown(low), shown(high))


STYLE = """body{font:15px/1.45 sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#222}table{border-collapse:collapse;width:100%}
td,th{border-bottom:1px solid #ddd;padding:.25em .6em;text-align:left;vertical-align:top}.miss{color:#b3261e;font-weight:bold}
.met{color:#2e7d32}.note{color:#666}img{max-width:48%;margin:.3em .3em 0 0;border:1px solid #eee}"""


def as_html(data, suffix):
    out = ["<!doctype html><html lang=en><meta charset=utf-8><title>Barchan: validation</title><style>%s</style>" % STYLE]
    checks = [check for experiment in data["experiments"] for check in experiment["checks"]]
    missed = sum(not check["is_met"] for check in checks)
    out.append("<h1>Validation</h1><p>Barchan %s, engine %s, size %s: %d experiments, %d numbers, %d outside their band.%s</p>"
        % (html.escape(data["version"]), data["engine"], data["size"], len(data["experiments"]), len(checks), missed, " Stopped before the end." * data["is_stopped"]))
    if suffix == ".svg":
        out.append("<p class=note>matplotlib is not installed here: the pictures are plain SVG.</p>")
    for experiment in data["experiments"]:
        out.append("<h2 id=%s>%s</h2>" % (experiment["name"], html.escape(experiment["title"])))
        out.append("<p>%s<br><span class=note>%s. %.1f s.</span></p>" % (html.escape(experiment["method"]), html.escape(experiment["source"]), experiment["seconds"]))
        if experiment["error"]:
            out.append("<p class=miss>%s</p>" % html.escape(experiment["error"]))
        out.append("<table><tr><th>number<th>found<th>band<th><th>where the band comes from")
        for check in experiment["checks"]:
            found = shown(check["mean"]) + ("" if check["half_width_95"] is None else " &plusmn; %s" % shown(check["half_width_95"]))
            state = "<td class=met>met" if check["is_met"] else "<td class=miss>missed"
            out.append("<tr><td>%s<td>%s %s<td>%s%s<td class=note>%s" % (html.escape(check["what"]), found, check["unit"], band(check), state, html.escape(check["source"])))
        out.append("</table>")
        own = {check["name"] for check in experiment["checks"]}
        rest = {name: value for name, value in experiment["numbers"].items() if name not in own}
        texts = ["%s %s" % (name, shown(value["mean"] if isinstance(value, dict) else value)) for name, value in rest.items()]
        texts += experiment["notes"]
        if texts:
            out.append("<p class=note>Also: %s.</p>" % html.escape("; ".join(texts)))
        out += ['<img src="%s%s" alt="%s">' % (name, suffix, html.escape(name)) for name in experiment["plots"]]
    out.append("</html>")
    return "\n".join(out) + "\n"


def write(folder, results, about):
    """Everything into the folder, which is made when it is not there -> what results.json holds."""
    os.makedirs(folder, exist_ok=True)
    draw, suffix = drawer()
    for result in results:
        for plot in result.plots:
            draw(plot, os.path.join(folder, plot.name + suffix))
    data = as_data(results, {**about, "pictures": suffix[1:]})
    for name, text in (("results.json", json.dumps(data, indent=1) + "\n"), ("report.html", as_html(data, suffix))):
        partial = os.path.join(folder, name + ".tmp")
        with open(partial, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(partial, os.path.join(folder, name))
    return data
