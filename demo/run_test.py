#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""run_test.py BUILD: runs the demo as a user does, and reads what it printed.
run_test.py --judge: does the demo notice what it must not let pass?
"""
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT_S = 40  # what a user is promised

sys.path.insert(0, HERE)
import report  # noqa: E402


# --- the real thing ----------------------------------------------------------


def need(tool):
    if not shutil.which(tool):
        print(f"SKIP: {tool} is not installed")
        sys.exit(77)


def is_number(cell):
    return re.fullmatch(r"[\d.]+( ([num]?s|[KMGT]iB|B))?", cell) is not None


ROW = re.compile(r" *(\S.*?)" + 3 * r"\s{2,}(\S+(?: \S+)?)" + "$")


def check_table(lines):
    """Every row is there, with a number in each of the unpinned columns."""
    cells = [row.groups() for row in map(ROW.match, lines[2:]) if row]
    labels = [label.strip() for label, cell in report.rows([]) if cell]
    assert [row[0] for row in cells] == labels, lines
    assert cells[0][1] in ("ENOMEM", "EPERM") and \
        cells[0][2:] == ("ok", "ok"), cells[0]
    for row in cells[1:]:
        assert all(map(is_number, row[2:])), row
    cell = {row[0]: row[1:] for row in cells}
    for zero in ("wrong", "retransmitted packets", "timeouts",
                 "time the NIC slept in faults"):
        assert cell[zero][2] == "0", (zero, cell[zero])
    assert cell["locked in RAM (VmLck)"] == ("0", "0", "0"), cell
    assert cell["time the NIC slept in faults"][1] != "0", cell


def check_picture(out):
    with open(os.path.join(out, "latency.png"), "rb") as png:
        assert png.read(8) == b"\x89PNG\r\n\x1a\n"
    svg = xml.etree.ElementTree.parse(os.path.join(out, "latency.svg"))
    text = "".join(svg.getroot().itertext())
    for word in ("sleeping", "nopin", "innocent connection",
                 "evicted memory"):
        assert word in text, word


def real(build):
    out = os.path.join(build, "demo-test")
    began = time.monotonic()
    done = subprocess.run([os.path.join(HERE, "run"), build, out], text=True,
                          capture_output=True, check=False)
    took = time.monotonic() - began
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.returncode
    assert took < LIMIT_S, f"it took {took:.0f} s"
    with open(os.path.join(out, "table.txt"), encoding="utf-8") as table:
        lines = table.read().splitlines()
    for line in lines:
        assert line in done.stdout and len(line) <= 80, line
    check_table(lines)
    check_picture(out)
    assert re.search(r"^ 65536 +\d+ +[\d.]+ +[1-9]", done.stdout, re.M)
    assert not os.path.exists(os.path.join(out, "memory-on-disk"))


# --- the judge ---------------------------------------------------------------

NAMES = ("pinned", "sleeping", "nopin")


def good():
    counted = {name: 1 for name in ("faults", "fault_park", "block_ns")}
    works = {"registered": 1 << 40, "locked": 0, "reg_us": 1.0,
             "checked": 1000, "wrong": 0, "requests": 1.0, "peer": [1, 2],
             "before": [1, 2], "during": [1, 2], "counters": counted,
             "everybody": {"retransmits": 0, "timeouts": 0}}
    return [{"refused": "ENOMEM", "locked": 0, "reg_us": 1.0},
            dict(works), dict(works)]


def found(columns):
    return list(report.problems(NAMES, columns))


def spoilt(column, **change):
    """The problems of a good run in which a column's facts are others."""
    columns = good()
    for name, value in change.items():
        if value is None:
            del columns[column][name]
        else:
            columns[column][name] = value
    return found(columns)


def judge():
    assert found(good()) == [], found(good())
    one = {"retransmits": 1, "timeouts": 0}
    assert spoilt(2, everybody=one) == ["nopin: 1 retransmits"]
    assert spoilt(2, everybody={**one, "retransmits": 0, "timeouts": 2}) == \
        ["nopin: 2 timeouts"]
    assert spoilt(1, everybody=one) == [], "the sleeping NIC may repeat"
    for column in (1, 2):
        assert "bytes are wrong" in spoilt(column, wrong=1)[0]
        assert "locked" in spoilt(column, locked=4096)[0]
        assert "gone" in spoilt(column, failure="gone")[0]
        for name in good()[column]:
            assert spoilt(column, **{name: None}), f"{name} is not missed"
    assert "not refused" in spoilt(0, refused=None)[0]
    lines = report.table(NAMES, good()).splitlines()
    assert any(re.match("registration +ENOMEM +ok +ok$", x) for x in lines)
    assert any(re.match("  wrong +- +0 +0$", x) for x in lines)


if __name__ == "__main__":
    if sys.argv[1] == "--judge":
        judge()
    else:
        need("ib_write_bw")
        need("gnuplot")
        real(os.path.abspath(sys.argv[1]))
