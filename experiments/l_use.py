# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Demand paging by use (l_use.c), and the same program written three ways
(l_pinned.c, l_cached.c, l_unpinned.c)."""
import os
import re

from lab import GIB, MIB, TIB, is_root, size

TITLE = "Demand paging by use; one program pinned, cached, unpinned"
ABOUT = """A region of 1 TiB is registered and 1 GiB of it used, spread over
all of it, by WRITEs of a peer: what it takes in memory, page tables and
entries of the NIC's page table. Then NPF's table of programming complexity: a
program that sends records of a table larger than memory, written with a few
registered buffers and copies, with a pin-down cache, and with unpinned memory;
lines of code without comments and blank lines, and without what the three
share."""
BUDGET_S = (20, 60)

HERE = os.path.dirname(os.path.abspath(__file__))
MEMLOCK = 8 * MIB  # Debian's default


def use(lab, found):
    used = 64 * MIB if lab.quick else GIB
    out = lab.own("l_use", TIB, used, 4 if lab.quick else 16)
    points = [[int(x) for x in row] for row in out.rows["use"]]
    rows, curves = [], {"RSS": [], "page tables": [], "the NIC's data": []}
    for bytes_used, rss, pte, locked, data in points:
        rows.append([size(bytes_used), size(rss << 10), size(pte << 10),
                     size(data << 10), size(locked << 10)])
        for name, kib in zip(curves, (rss, pte, data)):
            curves[name].append((bytes_used / MIB, kib / 1024))
    found.table(f"a region of {size(TIB)}, by what is used of it",
                ["used", "RSS", "page tables", "data of the NIC", "VmLck"],
                rows)
    found.lines("l_use", f"a region of {size(TIB)}: memory by use", "MiB used",
                "MiB", curves)
    last = points[-1]
    found.table("the NIC's page table", ["what", "pages"], [
        ["pages used", str(last[0] // 4096)],
        ["faults met", str(out.counter["target", "faults"])],
        ["tickets", str(out.counter["target", "tickets"])],
        ["entries replaced", str(out.counter["target", "spt_evictions"])]])
    found.see(f"Of {size(TIB)} registered, {size(last[0])} used take "
              f"{size(last[1] << 10)} of memory, {size(last[2] << 10)} of page "
              f"tables and {size(last[4] << 10)} of the NIC's data; "
              f"{size(last[3] << 10)} are locked.")


def lines_of_code(name):
    """Without comments and blank lines."""
    with open(os.path.join(HERE, name), encoding="utf-8") as text:
        code = re.sub(r"/\*.*?\*/", "", text.read(), flags=re.DOTALL)
    return sum(bool(line.strip()) for line in code.splitlines())


def limited():
    """What everybody else may lock, not what root may."""
    before = ["prlimit", f"--memlock={MEMLOCK}"]
    if is_root():
        before += ["setpriv", "--bounding-set=-ipc_lock",
                   "--inh-caps=-ipc_lock"]
    return before


def three_ways(lab, found):
    ops = 2000 if lab.quick else 50000
    rows, lines, rates, names = [], [], [], []
    for name, mode, how in (
            ("l_pinned", "pin", "buffers and copies"),
            ("l_cached", "pin", "pin-down cache"),
            ("l_unpinned", "ondemand", "unpinned")):
        count = lines_of_code(name + ".c")
        got = found.attempt(f"{how}, pinned memory", lab.own, name, ops,
                            env={"NOPIN_REG": mode}, before=limited())
        names.append(how)
        lines.append(count)
        rates.append(got.value("rate") / 1e3 if got else None)
        rows.append([how, str(count), *((
            f"{got.value('rate') / 1e3:.1f} k/s",
            size(got.value("locked") * 1024),
            f"{float(got.rows['hits'][0][0]):.1%}" if "hits" in got.rows
            else "-") if got else ("-", "-", "-"))])
    found.table(f"the same program three ways, ulimit -l {size(MEMLOCK)}",
                ["written with", "lines of code", "records of 4 KiB",
                 "locked", "cache hits"], rows)
    found.bars("l_lines", "the same program three ways", "lines; thousands a "
               "second", names, {"lines of code": lines,
                                 "thousand records a second": rates})
    found.see(f"The same program has {lines[0]} lines with registered buffers, "
              f"{lines[1]} with a pin-down cache and {lines[2]} with unpinned "
              "memory.")


def run(lab, found):
    use(lab, found)
    three_ways(lab, found)
