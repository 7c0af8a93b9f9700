# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""report.py: what demo/run saw, as a table, as a picture and as a judgement.

A column is a dict of facts; what its programs did not get to is missing:

  refused              the errno with which memory was not registered
  failure              why its programs did not end well
  registered, locked   bytes                    reg_us   time
  checked, wrong       bytes                    requests a second
  counters, everybody  of the victim's NIC, and sums over all three NICs
  before, during       latencies of the innocent connection, us
  peer                 of the transfers on evicted memory, during, us
"""
import os
import shutil
import statistics
import subprocess

UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def size(n):
    for unit, name in UNITS:
        if n >= unit:
            return f"{n / unit:.3g} {name}"
    return f"{n} B" if n else "0"


def duration(us):
    if us < 1000:
        return f"{us:.3g} us" if us else "0"
    if us < 1e6:
        return f"{us / 1e3:.3g} ms"
    return f"{us / 1e6:.3g} s"


def quantile(samples, percent):
    if len(samples) < 2:
        return None
    return statistics.quantiles(samples, n=100, method="inclusive")[percent - 1]


# --- the table ---------------------------------------------------------------

# How a NIC answers a missing page, and what that means.
HOW = (
    ("inline", "touched by the copy itself: cheap"),
    ("park", "transfer waits; nothing is sent"),
    ("redirect", "payload kept aside, placed later"),
    ("resume", "peer asked for it again later"),
    ("rnr", "peer told to come again (RNR)"),
    ("silence", "dropped; the peer will repeat it"),
    ("replay", "response dropped, asked for again"),
    ("block", "the whole NIC sleeps"),
)
ALWAYS = ("inline", "park", "redirect", "resume", "rnr", "block")


def registration(column):
    if "refused" in column:
        return column["refused"]
    return "ok" if "registered" in column else None


def faults_met(column):
    counters = column.get("counters")
    if counters is None:
        return None
    return str(counters.get("faults", 0) + counters.get("fault_block", 0))


def counter(which, name, show=str):
    def cell(column):
        counters = column.get(which)
        return None if counters is None else show(counters.get(name, 0))
    return cell


def fact(name, show=str):
    return lambda column: show(column[name]) if name in column else None


def latency(name, percent):
    def cell(column):
        value = quantile(column.get(name, ()), percent)
        return None if value is None else duration(value)
    return cell


def rows(columns):
    """(label, column -> text or None); a label without a cell is a heading."""
    yield "registration", registration
    yield "  registered", fact("registered", size)
    yield "  locked in RAM (VmLck)", fact("locked", size)
    yield "  it took", fact("reg_us", duration)
    yield "bytes checked", fact("checked", size)
    yield "  wrong", fact("wrong")
    yield "faults the victim's NIC met", faults_met
    for how, meaning in HOW:
        cell = counter("counters", f"fault_{how}")
        if how in ALWAYS or any(cell(c) not in (None, "0") for c in columns):
            yield f"  {how + ':':9} {meaning}", cell
    yield "time the NIC slept in faults", counter(
        "counters", "block_ns", lambda ns: duration(ns / 1e3))
    yield "transfers on evicted memory", None
    yield "  a second", fact("requests", lambda n: f"{n:.0f}")
    yield "  median", latency("peer", 50)
    yield "innocent second connection", None
    yield "  before the eviction, p50", latency("before", 50)
    yield "                       p99", latency("before", 99)
    yield "  during the eviction, p50", latency("during", 50)
    yield "                       p99", latency("during", 99)
    yield "retransmitted packets", counter("everybody", "retransmits")
    yield "timeouts", counter("everybody", "timeouts")


def table(names, columns):
    lines = [("", *names)]
    for label, cell in rows(columns):
        lines.append((label, *((cell(c) or "-") if cell else ""
                               for c in columns)))
    widths = [max(len(line[i]) for line in lines)
              for i in range(len(lines[0]))]
    lines.insert(1, tuple("-" * width for width in widths))
    return "".join("  ".join(
        text.ljust(width) if i == 0 else text.rjust(width)
        for i, (text, width) in enumerate(zip(line, widths))).rstrip() + "\n"
        for line in lines)


# --- the judgement -----------------------------------------------------------


def holes(column):
    """Labels of the rows that an unpinned column should fill and does not."""
    return [label.strip() for label, cell in rows([column])
            if cell and cell(column) is None]


def problems(names, columns):
    """What should not be, in words; nothing if the demo shows what it is to."""
    for name, column in zip(names, columns):
        if name == "pinned":
            if "refused" not in column:
                yield (f"{name}: registration was not refused: "
                       f"{column.get('failure', 'it succeeded')}")
            continue
        if "failure" in column or "refused" in column:
            yield f"{name}: {column.get('failure') or column['refused']}"
            continue
        for label in holes(column):
            yield f"{name}: nothing is known of: {label}"
        if column.get("wrong"):
            yield f"{name}: {column['wrong']} bytes are wrong"
        if column.get("locked"):
            yield f"{name}: memory is locked"
        if name == "nopin":
            for bad in ("retransmits", "timeouts"):
                n = column.get("everybody", {}).get(bad, 0)
                if n:
                    yield f"{name}: {n} {bad}"


def summary(sleeping, nopin):
    """A line, or None."""
    slept = quantile(sleeping.get("during", ()), 50)
    ours = quantile(nopin.get("during", ()), 50)
    if slept is None or ours is None:
        return None
    return ("While its neighbour's pages were away, a READ of the innocent "
            f"connection took\n{duration(slept)} (median) on the sleeping NIC "
            f"and {duration(ours)} on nopin.")


# --- the picture -------------------------------------------------------------

PLOT = """
set terminal {terminal}
set output '{output}'
set multiplot layout 1,2 margins 0.1,0.985,0.125,0.795 spacing 0.03 \\
title "{{/:Bold=16 Two connections to one NIC: what happens when the memory \\
of one is evicted}}\\n{{/=12 each dot is a transfer, each NIC runs the same \\
unmodified programs}}"
set logscale y
set yrange [{bottom}:{top}]
set xrange [{first}:{last}]
set xlabel 'seconds since the eviction began'
set xtics 1 nomirror
set border 3
unset key
set object 1 rectangle from 0, graph 0 to {last}, graph 1 behind \\
fc rgb '#fff4dc' fs solid noborder
set label 1 'pages are being evicted' at {middle}, graph 0.96 center \\
font ',11' tc rgb '#8a6d3b'
set label 2 'evicted memory' at {first}, graph 0.96 left offset 1,0 \\
font ',12' tc rgb '#b8480a'
set label 3 'innocent connection' at {first}, graph 0.90 left offset 1,0 \\
font ',12' tc rgb '#0a4cb0'
"""
PANEL = """
set title "{{/:Bold {name}}}: {what}" font ',13'
{tics}
set grid ytics lt 1 lw 0.5 lc rgb '#d5d5d5'
plot '{peer}' using 1:2 with points pt 7 ps 0.35 lc rgb '#e07b39', \\
'{probe}' using 1:2 with points pt 7 ps 0.45 lc rgb '#2060d0'
unset ylabel
"""
WHAT = {"sleeping": "the NIC waits in the page fault",
        "nopin": "only the transfer that needs the page waits"}
DECADES = (("10 us", 10), ("100 us", 100), ("1 ms", 1e3), ("10 ms", 1e4),
           ("100 ms", 1e5), ("1 s", 1e6), ("10 s", 1e7))
TERMINALS = {
    "svg": ("svg size 1200,560 dynamic font 'sans,12' background 'white'",),
    "png": ("pngcairo size 1200,560 font 'sans,11'", "png size 1200,560"),
}


def write_series(path, samples):
    with open(path, "w", encoding="ascii") as data:
        data.writelines(f"{t:.6f} {us:.1f}\n" for t, us in samples)
    return path


def panel(name, seen, labelled, out):
    tics = ", ".join(f"'{text if labelled else ''}' {us:g}"
                     for text, us in DECADES)
    tics = f"set ytics nomirror ({tics})"
    if labelled:
        tics += "\nset ylabel 'time that a transfer took' offset -1"
    files = {who: write_series(os.path.join(out, f"{name}-{who}.dat"), series)
             for who, series in seen.items()}
    return PANEL.format(name=name, what=WHAT[name], tics=tics, **files)


def picture(seen, first, last, out):
    """
    Draw @seen: column -> {"peer": [(s, us)], "probe": [...]}, from second
    @first to @last. Returns the files, and why others are not there.
    """
    if not shutil.which("gnuplot"):
        return [], ["gnuplot is not installed"]
    every = [us for one in seen.values() for series in one.values()
             for t, us in series if first <= t <= last]
    panels = "".join(panel(name, one, i == 0, out)
                     for i, (name, one) in enumerate(seen.items()))
    drawn, missing = [], []
    for kind, terminals in TERMINALS.items():
        path = os.path.join(out, f"latency.{kind}")
        for terminal in terminals:
            script = PLOT.format(
                terminal=terminal, output=path, first=first, last=last,
                bottom=min(every) / 2, top=max(every) * 8,
                middle=last / 2) + panels
            done = subprocess.run(["gnuplot"], input=script, text=True,
                                  capture_output=True, check=False)
            if done.returncode == 0 and os.path.getsize(path):
                drawn.append(path)
                break
        else:
            missing.append(f"no {kind}: {done.stderr.strip()}")
    return drawn, missing
