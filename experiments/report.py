# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""report.py: the findings of experiments as files: a table of numbers (.tsv),
all of it for programs (.json), plots (.svg and .png, by gnuplot), one page of
HTML that needs no other file, and doc/experiments.md.
"""
import base64
import datetime
import html
import json
import math
import os
import shutil
import subprocess
import textwrap

from programs import cpu_model

WORD = {True: "met", False: "missed", None: "not measured"}
COLOURS = ("#2060d0", "#e07b39", "#2e8b57", "#b03060", "#7050c0", "#8a6d3b",
           "#008b8b", "#555555", "#c0a000", "#d060b0", "#60a030")
TERMINALS = {
    "svg": ("svg size 900,{height} dynamic font 'sans,12' background 'white'",),
    "png": ("pngcairo size 900,{height} font 'sans,11'",
            "png size 900,{height}"),
}


# --- plots -------------------------------------------------------------------


def quoted(text):
    """For a string of gnuplot in single quotes, without its markup."""
    return "'" + str(text).replace("'", "''").replace("_", "\\_") + "'"


def scale(plot):
    lines = [f"set title {quoted(plot['title'])}",
             f"set ylabel {quoted(plot['ylabel'])}",
             "set border 3", "set key outside right top samplen 2",
             "set xtics nomirror", "set ytics nomirror",
             "set grid ytics lt 1 lw 0.5 lc rgb '#d5d5d5'"]
    if plot["log"]:
        lines.append(f"set logscale {plot['log']}")
    if "y" not in plot["log"]:
        lines.append("set yrange [0:*]")
    return lines


def sizes(series):
    """Tics for an axis of bytes: each second power of 4."""
    xs = [x for points in series.values() for x, _ in points if x > 0]
    low, high = (int(math.log2(f(xs))) for f in (min, max))
    names = {0: "", 10: "K", 20: "M", 30: "G", 40: "T"}
    step = max(2, (high - low) // 6)
    return ", ".join(f"'{1 << k % 10}{names[k - k % 10]}' {2 ** k}"
                     for k in range(low, high + 1, step))


def block(points):
    return "".join(f"{x} {y}\n" for x, y in points) + "e\n"


def draw_lines(plot):
    lines = scale(plot) + [f"set xlabel {quoted(plot['xlabel'])}"]
    if plot["xsize"]:
        lines.append(f"set xtics nomirror ({sizes(plot['series'])})")
    curves = ", ".join(
        f"'-' using 1:2 with linespoints pt 7 ps 0.5 lw 1.5 "
        f"lc rgb '{COLOURS[i % len(COLOURS)]}' title {quoted(label)}"
        for i, label in enumerate(plot["series"]))
    return "\n".join(lines + ["plot " + curves, ""]) + \
        "".join(block(points) for points in plot["series"].values())


def draw_bars(plot):
    labels = ", ".join(f"{quoted(label)} {i}"
                       for i, label in enumerate(plot["labels"]))
    width = 0.8 / len(plot["series"])
    lines = scale(plot) + [
        f"set boxwidth {width * 0.92}", "set style fill solid 0.9 noborder",
        f"set xtics nomirror ({labels}) rotate by -25",
        f"set xrange [-0.6:{len(plot['labels']) - 0.4}]"]
    curves, data = [], ""
    for i, (label, values) in enumerate(plot["series"].items()):
        left = (i + 0.5) * width - 0.4
        curves.append(f"'-' using 1:2 with boxes "
                      f"lc rgb '{COLOURS[i % len(COLOURS)]}' "
                      f"title {quoted(label)}")
        data += block([(k + left, v) for k, v in enumerate(values)
                       if v is not None] or [(0, "NaN")])
    return "\n".join(lines + ["plot " + ", ".join(curves), ""]) + data


def draw_heat(plot):
    names = list(plot["series"])
    # labels of tics are formats
    labels = ", ".join(f"{quoted(label.replace('%', '%%'))} {i}"
                       for i, label in enumerate(plot["labels"]))
    # the first row at the top
    rows = ", ".join(f"{quoted(name)} {len(names) - 1 - i}"
                     for i, name in enumerate(names))
    cells = [(x, len(names) - 1 - i, value) for i, name in enumerate(names)
             for x, value in enumerate(plot["series"][name])
             if value is not None]
    lines = [f"set title {quoted(plot['title'])}", "unset key", "set border 0",
             f"set xtics scale 0 ({labels}) rotate by -35",
             f"set ytics scale 0 ({rows})", "set cbrange [0:1]",
             f"set cblabel {quoted(plot['ylabel'])}",
             "set palette defined (0 '#b3261e', 0.5 '#f0c040', 0.9 '#b8d890', "
             "1 '#1a7a3a')",
             f"set xrange [-0.5:{len(plot['labels']) - 0.5}]",
             f"set yrange [-0.5:{len(names) - 0.5}]",
             "set style fill solid noborder",
             "plot '-' using 1:2:(0.48):(0.46):3 with boxxyerror lc palette, "
             "'-' using 1:2:3 with labels"]
    data = "".join(f"{x} {y} {v:.2f}\n" for x, y, v in cells) + "e\n"
    return "\n".join(lines + [""]) + 2 * data


def draw(plot, path):
    """@path: without ending. Return: None, or why there is no picture."""
    body = {"lines": draw_lines, "bars": draw_bars,
            "heat": draw_heat}[plot["kind"]](plot)
    for kind, terminals in TERMINALS.items():
        for terminal in terminals:
            script = (f"set terminal {terminal.format(height=380)}\n"
                      f"set output '{path}.{kind}'\n{body}")
            done = subprocess.run(["gnuplot"], input=script, text=True,
                                  capture_output=True, check=False)
            if done.returncode == 0 and os.path.getsize(f"{path}.{kind}"):
                break
        else:
            return f"{kind}: {done.stderr.strip()[-300:]}"
    return None


# --- files of one experiment -------------------------------------------------


def write_tsv(found, path):
    with open(path, "w", encoding="utf-8") as out:
        for title, head, rows in found.tables:
            out.write(f"# {title}\n")
            for row in [head] + rows:
                out.write("\t".join(row) + "\n")


def write(letter, found, out):
    """The files of experiment @letter. Return: names of the pictures."""
    write_tsv(found, os.path.join(out, f"{letter}.tsv"))
    with open(os.path.join(out, f"{letter}.json"), "w",
              encoding="utf-8") as data:
        json.dump(found.as_dict(), data, indent=1)
    names = []
    for plot in found.plots:
        name = plot["name"]
        why = "gnuplot is not installed" if not shutil.which("gnuplot") else \
            draw(plot, os.path.join(out, name))
        if why:
            found.skip(f"plot {name}", why)
        else:
            names.append(name)
    return names


# --- all of them -------------------------------------------------------------


def machine():
    return (f"{cpu_model()}, {len(os.sched_getaffinity(0))} cores, "
            f"Linux {os.uname().release}")


def summary(experiments):
    """A row for each: letter, title, targets met, missed, skipped parts."""
    for e in experiments:
        verdicts = [met for _, met, _ in e.found.verdicts]
        state = "failed" if e.found.failed else \
            "ran" if e.found.tables else "skipped"
        yield [e.letter, e.module.TITLE, state, f"{e.seconds:.0f} s",
               str(verdicts.count(True)), str(verdicts.count(False)),
               str(verdicts.count(None)), str(len(e.found.skipped))]


SUMMARY_HEAD = ["", "experiment", "", "took", "targets met", "missed",
                "not measured", "parts skipped"]

STYLE = """
body { font: 15px/1.5 sans-serif; color: #222; max-width: 980px;
       margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.6em } h2 { margin-top: 2.2em; border-top: 1px solid #ccc;
     padding-top: .8em; font-size: 1.25em }
table { border-collapse: collapse; margin: .8em 0; font-size: 13px }
caption { text-align: left; font-weight: bold; padding: .3em 0 }
th, td { border-bottom: 1px solid #ddd; padding: .2em .7em; text-align: left }
th { background: #f3f3f3 } td + td { font-variant-numeric: tabular-nums }
img { width: 100%; max-width: 900px; display: block }
.met { color: #1a7a3a; font-weight: bold } .missed { color: #b3261e;
  font-weight: bold } .unmeasured, .skipped { color: #8a6d3b }
.failed { color: #b3261e; font-weight: bold }
"""


def html_table(title, head, rows):
    cells = "".join(f"<th>{html.escape(c)}</th>" for c in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) +
        "</tr>\n" for row in rows)
    return (f"<table><caption>{html.escape(title)}</caption>"
            f"<tr>{cells}</tr>\n{body}</table>\n")


def html_one(e, out):
    say, found = html.escape, e.found
    parts = [f'<h2 id="{e.letter}">{e.letter}. {say(e.module.TITLE)}</h2>\n',
             f"<p><em>{say(' '.join(e.module.ABOUT.split()))}</em></p>\n"]
    if found.failed:
        parts.append(f'<p class="failed">failed: {say(found.failed)}</p>\n')
    if found.seen:
        parts.append(f"<p>{say(' '.join(found.seen))}</p>\n")
    if found.verdicts:
        parts.append("<ul>")
        for target, met, figures in found.verdicts:
            word = WORD[met]
            parts.append(
                f'<li><span class="{word.replace("not ", "un")}">{word}</span>'
                f": {say(target)}: {say(figures)}</li>\n")
        parts.append("</ul>\n")
    for name in e.pictures:
        with open(os.path.join(out, name + ".svg"), "rb") as svg:
            data = base64.b64encode(svg.read()).decode("ascii")
        parts.append(f'<img alt="{say(name)}" '
                     f'src="data:image/svg+xml;base64,{data}">\n')
    parts += [html_table(*table) for table in found.tables]
    if found.skipped:
        parts.append('<ul class="skipped">' + "".join(
            f"<li>skipped: {say(what)}: {say(why)}</li>\n"
            for what, why in found.skipped) + "</ul>\n")
    return "".join(parts)


def write_html(experiments, notes, out):
    path = os.path.join(out, "report.html")
    rows = list(summary(experiments))
    with open(path, "w", encoding="utf-8") as page:
        page.write(
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            f"<title>nopin: experiments</title><style>{STYLE}</style></head>\n"
            f"<body><h1>nopin: experiments, {datetime.date.today()}</h1>\n"
            f"<p>{html.escape(machine())}. {html.escape(' '.join(notes))}</p>"
            "\n" + html_table("What ran", SUMMARY_HEAD, rows) +
            "".join(html_one(e, out) for e in experiments) +
            "</body></html>\n")
    return path


# --- doc/experiments.md ------------------------------------------------------


def fill(text, first="", rest=""):
    return textwrap.fill(" ".join(text.split()), 80, initial_indent=first,
                         subsequent_indent=rest, break_long_words=False,
                         break_on_hyphens=False) + "\n"


def md_table(title, head, rows):
    """In columns: readable as it is, too."""
    rows = [[c.replace("|", "\\|") for c in row] for row in [head] + rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths)) + " |"
             for row in rows]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return f"{title}:\n\n" + "\n".join(lines) + "\n\n"


def md_one(e, out, pictures):
    found = e.found
    parts = [f"## {e.letter}. {e.module.TITLE}\n\n", fill(e.module.ABOUT), "\n"]
    if found.failed:
        parts += [fill(f"**Failed**: {found.failed}"), "\n"]
    if found.seen:
        parts += [fill(" ".join(found.seen)), "\n"]
    for target, met, figures in found.verdicts:
        parts.append(fill(f"**{WORD[met]}**: {target}: {figures}", "- ", "  "))
    parts.append("\n" if found.verdicts else "")
    for name in e.pictures:
        shutil.copy(os.path.join(out, name + ".svg"), pictures)
        parts.append(f"![{name}](experiments/{name}.svg)\n\n")
    parts += [md_table(*table) for table in found.tables]
    for what, why in found.skipped:
        parts.append(fill(f"skipped: {what}: {why}", "- ", "  "))
    parts.append("\n" if found.skipped else "")
    return "".join(parts)


def write_doc(experiments, notes, out, doc):
    pictures = os.path.join(doc, "experiments")
    shutil.rmtree(pictures, ignore_errors=True)
    os.makedirs(pictures)
    with open(os.path.join(doc, "experiments.md"), "w",
              encoding="utf-8") as page:
        page.write(
            "<!-- Written by experiments/run --doc. -->\n# Experiments\n\n" +
            fill("The experiments of the prior work, on this engine: `make "
                 "experiments` repeats them. Each target is met or missed as "
                 "measured; what a host cannot do is skipped and says why.") +
            "\n" + fill(f"{datetime.date.today()}, {machine()}. "
                        + " ".join(notes)) + "\n" +
            md_table("What ran", SUMMARY_HEAD, list(summary(experiments))) +
            "".join(md_one(e, out, pictures) for e in experiments).rstrip() +
            "\n\n<!-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only "
            "-->\n")
