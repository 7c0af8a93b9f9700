#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""run_test.py --judge: are results read, judged and shown as they are?
run_test.py BUILD: runs all experiments quickly, and looks whether what they
promise is there: tables, plots, a report; whatever was skipped, for a reason
that is expected. Their numbers say nothing.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import b_fault  # noqa: E402
import c_table  # noqa: E402
import f_overcommit  # noqa: E402
import k_memops  # noqa: E402
import lab  # noqa: E402
import programs  # noqa: E402
import report  # noqa: E402

# Why a part may be skipped: (letter, pattern of what, pattern of the reason).
EXPECTED = (
    (".", ".*", r"this NIC does not have NOPIN_(FAULT|REG)=.*"),
    (".", ".*", r"no swap, and none can be made: .*"),
    (".", ".*", r"(network namespaces|merging pages|swapping out|this|"
                  r"locking|a slow link).* root.*"),
    (".", ".*slow.*", r"(userfaultfd of the kernel's accesses needs root|"
                      r"no such userfaultfd)"),
    ("i", "nopin move .*|ib_write_bw under nopin move|"
          "ib_write_bw, data checked",
     "the kernel does not let us stop those who touch the memory meanwhile"),
    ("f", ".*", r"a memory limit and swap need root"),
    ("f", ".*", r"no memory limit can be set here \(cgroup\): .*"),
    ("a", "warm, pinned", r"two regions of \d+ MiB do not fit"),
    ("f", "all of it", "no server could be started"),
    ("o", ".*", "no tun devices"),
    (".", ".*pin.*", r"Cannot allocate memory|Operation not permitted"),
)


def need(tool):
    if not shutil.which(tool):
        print(f"SKIP: {tool} is not installed")
        sys.exit(77)


def is_expected(letter, what, why):
    return any(re.fullmatch(a, letter) and re.fullmatch(b, what) and
               re.fullmatch(c, why) for a, b, c in EXPECTED)


def check_pictures(out, plots):
    for plot in plots:
        path = os.path.join(out, plot["name"])
        with open(path + ".png", "rb") as png:
            assert png.read(8) == b"\x89PNG\r\n\x1a\n", path
        svg = xml.etree.ElementTree.parse(path + ".svg")
        text = "".join(svg.getroot().itertext())
        assert plot["title"] in text, (path, plot["title"])


def check_one(out, letter):
    with open(os.path.join(out, letter + ".json"), encoding="utf-8") as data:
        found = json.load(data)
    assert not found["failed"], (letter, found["failed"])
    for what, why in found["skipped"]:
        assert is_expected(letter, what, why), (letter, what, why)
    if any(what == "all of it" for what, _ in found["skipped"]):
        return
    if not found["tables"] and os.geteuid() and found["skipped"] and \
            all("need root" in why for _, why in found["skipped"]):
        return  # each part needs root
    assert found["tables"], letter
    # d without userfaultfd compares messages, and has nothing to plot
    unjudged = found["verdicts"] and all(met is None for _, met, _ in
                                         found["verdicts"])
    assert unjudged or found["seen"] and found["plots"], letter
    with open(os.path.join(out, letter + ".tsv"), encoding="utf-8") as tsv:
        text = tsv.read()
    for title, head, rows in found["tables"]:
        assert f"# {title}\n" in text, (letter, title)
        for row in rows:
            assert len(row) == len(head), (letter, title, row)
    check_pictures(out, found["plots"])


def main(build):
    need("ib_write_bw")
    need("gnuplot")
    out = os.path.join(build, "experiments")
    for kind in ("json", "tsv", "svg", "png", "html"):
        for old in glob.glob(os.path.join(out, "*." + kind)):
            os.unlink(old)
    done = subprocess.run([os.path.join(HERE, "run"), "--quick", build],
                          text=True, capture_output=True, check=False)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.returncode
    letters = sorted(os.path.basename(path)[0]
                     for path in glob.glob(os.path.join(HERE, "?_*.py")))
    for letter in letters:
        check_one(out, letter)
    with open(os.path.join(out, "report.html"), encoding="utf-8") as page:
        report = page.read()
    for letter in letters:
        assert f'id="{letter}"' in report, letter
    assert not re.search(r"(src|href)=\"(?!data:)", report), "not one file"
    for told in (build, os.uname().nodename):
        assert told not in report, f"the report tells {told}"


# --- the judge ---------------------------------------------------------------


def dist(series, *values):
    return "\t".join(["dist", series, "9", "5.5", *map(str, values)]) + "\n"


def memory_operation(during="9\t0\t0", after="9\t0\t0", status=0, changed=0):
    return lab.Output(f"during\t{during}\nafter\t{after}\nstatus\t{status}\n"
                      f"snapshots\t{changed}\n")


def judge_data():
    def good(name, **what):
        return k_memops.judge(name, memory_operation(**what))[2]
    assert good("nothing") and good("mprotect", status=10)
    assert good("dontneed", during="5\t4\t0")
    assert not good("nothing", during="5\t4\t0"), "content is lost"
    assert not good("dontneed", during="5\t3\t1"), "a word is wrong"
    assert not good("dontneed", after="8\t1\t0"), "lost afterwards"
    assert not good("nothing", after="8\t0\t1"), "wrong afterwards"
    assert not good("nothing", status=10), "an error nobody asked for"
    assert not good("mprotect"), "no error where access is gone"
    assert not good("mprotect", status=12), "another error"
    assert not good("fork-target", changed=1), "a child saw a WRITE"


def judge_recorder():
    """A packet met no fault, the next one did; of one fault the recorder knows
    only the end, and the last is not over."""
    events = b_fault.EVENT.findall(
        "  -99.000 us RX, psn 0x000000, BTH opcode 0xa, payload bytes 4096\n"
        "  -90.500 us RX, psn 0x000001, BTH opcode 0xa, payload bytes 4096\n"
        "  -90.000 us FAULT, psn 0x000001, strategy 0x5, page number 7\n"
        "  -60.000 us RESOLVED, psn 0x0, verdict 0x0, service time, ns 30000\n"
        "  -50.000 us PLACED, psn 0x000001, slot 0x0, payload bytes 40000\n"
        "  -40.000 us PLACED, psn 0x000002, slot 0x0, payload bytes 40000\n"
        "  -30.000 us RX, psn 0x000003, BTH opcode 0xa, payload bytes 4096\n"
        "  -29.000 us FAULT, psn 0x000003, strategy 0x5, page number 8\n")
    faults = list(b_fault.recorded(
        [(-float(ago), name) for ago, name, *_ in events]))
    assert faults == [(0.5, 30.0, 10.0)], faults
    stages = b_fault.stages_of(
        faults, {"cpu": {50: 2.0}, "added": {50: 45.0}})
    assert list(stages.values()) == [0.5, 28.0, 2.0, 10.0, 4.5], stages


def judge_table():
    def out(rate, **answers):
        return lab.Output(
            f"bytes\t{rate * 1e6:.0f}\nseconds\t1\n" + "".join(
                f"counter\ttarget\t{name}\t{n}\n"
                for name, n in answers.items()))
    cells = {
        ("minor", 0): {"adaptive": out(9, fault_inline=9, fault_overwrite=1,
                                       engine_minflt=4),
                       "block": out(5),
                       "redirect": out(10)},
        ("file", 10): {"adaptive": out(8, fault_redirect=7), "resume": out(4)},
        ("swap", 0): {"redirect": out(4)},
    }
    best, worst, shares = c_table.judge(cells)
    assert best == {("minor", 0): 0.9, ("file", 10): 2.0}, best
    assert worst == {("minor", 0): 1.8, ("file", 10): 2.0}, worst
    assert shares["inline"] == 0.375 and shares["redirect"] == 0.5, shares
    found = lab.Findings()
    c_table.verdicts(found, cells)
    assert [met for _, met, _ in found.verdicts] == [False, True, False]
    del cells["minor", 0]["redirect"]
    found = lab.Findings()
    c_table.verdicts(found, cells)
    assert [met for _, met, _ in found.verdicts] == [True, True, False]


def judge_output():
    out = lab.Output(dist("x", *range(12)) + "counter\ta\tfaults\t7\n"
                     "hits\t0.5\nSKIP: not a field\n")
    assert out.dist["x"]["n"] == 9 and out.dist["x"]["mean"] == 5.5
    assert out.dist["x"][50] == 5 and out.dist["x"][100] == 11
    assert out.counter["a", "faults"] == 7 and out.value("hits") == 0.5
    assert lab.quantile([3, 1, 2], 50) == 2 and lab.quantile([3, 1], 100) == 3
    assert [lab.us(x) for x in (0.5, 1500, 2e6)] == ["0.5 us", "1.5 ms", "2 s"]
    assert [lab.size(n) for n in (1, 4096, lab.TIB)] == \
        ["1 B", "4 KiB", "1 TiB"]


# A server that listens, and a client that complains in the middle of a line.
PAIR = """
import os, socket, sys
if len(sys.argv) == 3:
    with socket.create_server(("127.0.0.1", int(sys.argv[2]))) as s:
        s.settimeout(60)
        s.accept()
for stream, text in ((1, b"8 1000 0.01"), (2, b"complaint"), (1, b"1954 2.5")):
    os.write(stream, text)
"""


def judge_pair():
    """What a client complains of is not in what is read of it."""
    out = programs.LOOPBACK.pair([sys.executable, "-c", PAIR], "-p", {})
    assert out == "8 1000 0.011954 2.5", out


def judge_skip():
    """Why is what was said first, with those words."""
    out = "a\t1\nSKIP: needs root\nduring\t324\t0\t0\n"
    assert programs.skip_reason(out) == "needs root"
    assert programs.skip_reason("a\t1\nno memory\n") == "no memory"


def judge_limit():
    """Of a group of v1, of v2, and of both."""
    v1 = "9:name=systemd:/s\n4:cpu,memory:/a/b\n0::/c\n"
    assert lab.memory_group(v1) == ("/memory/a/b", "memory.limit_in_bytes")
    assert lab.memory_group("4:memory:/\n") == \
        ("/memory", "memory.limit_in_bytes")
    assert lab.memory_group("0::/c/d\n") == ("/c/d", "memory.max")
    assert lab.memory_group("0::/\n") == ("", "memory.max")


def judge_overcommit():
    """Two clients, two slots; one of them got a wrong item."""
    out = lab.Output("started\t2\t0\nclient\t30\t0\t1\t2\t3\n"
                     "client\t10\t1\t1\t2\t3\nslot\t0\t0\t20\n"
                     "slot\t0\t250\t10\nslot\t1\t0\t5\n"
                     "slot\t1\t250\t5\n")
    assert f_overcommit.over_time(out) == [(0, 100), (0.25, 60)]
    assert f_overcommit.served(out, 500) == 80
    found = lab.Findings()
    f_overcommit.judge(found, {(5, "pinned"): out, (5, "unpinned"): out}, 500)
    assert [met for _, met, _ in found.verdicts] == [False, False, False]
    found = lab.Findings()
    f_overcommit.judge(found, {(5, "pinned"): out}, 500)
    assert [met for _, met, _ in found.verdicts] == [False, None]


def judge_report():
    found = lab.Findings()
    found.table("a <table>", ["x", "y"], [["1", "a|b"]])
    found.see("What was seen.")
    for met in (True, True, True, False, False, None):
        found.verdict(f"target {met}", met, "figures")
    found.skip("a part", "/some/where/a reason")
    found.forget_paths("/some/where")
    module = types.SimpleNamespace(TITLE="A title", ABOUT="What is done.")
    e = types.SimpleNamespace(letter="z", module=module, found=found,
                              pictures=[], seconds=1)
    with tempfile.TemporaryDirectory() as out:
        assert report.write("z", found, out) == []
        with open(report.write_html([e], ["A note."], out),
                  encoding="utf-8") as page:
            html = page.read()
        report.write_doc([e], ["A note."], out, out)
        with open(os.path.join(out, "experiments.md"),
                  encoding="utf-8") as page:
            doc = page.read()
    assert "a &lt;table&gt;" in html and "a\\|b" in doc
    for text in (html, doc):
        for words in ("A note.", "What was seen.", "What is done.",
                      "skipped: a part: a reason"):
            assert words in text, words
    for word, met in (("met", True), ("missed", False), ("not measured", None)):
        assert f"**{word}**: target {met}: figures" in doc, word
        assert f">{word}</span>: target {met}: figures" in html, word
    row = list(report.summary([e]))[0]
    assert row[2:] == ["ran", "1 s", "3", "2", "1", "1"], row


def judge_output_of():
    """A tree that is no clone may be on a host without git."""
    assert programs.output_of("echo", "x") == "x"
    assert programs.output_of("false") == ""
    assert programs.output_of("no-such-program", "x") == ""


def judge_budgets():
    """All together in under half an hour."""
    budgets = {}
    for path in glob.glob(os.path.join(HERE, "?_*.py")):
        with open(path, encoding="utf-8") as module:
            full = re.search(r"^BUDGET_S = \((\d+), \d+\)$", module.read(),
                             re.MULTILINE)
        budgets[os.path.basename(path)[0]] = int(full[1])
    assert sum(budgets.values()) < 30 * 60, budgets


def judge():
    judge_budgets()
    judge_data()
    judge_recorder()
    judge_table()
    judge_output()
    judge_pair()
    judge_skip()
    judge_limit()
    judge_overcommit()
    judge_report()
    judge_output_of()


if __name__ == "__main__":
    if sys.argv[1] == "--judge":
        judge()
    else:
        main(os.path.abspath(sys.argv[1]))
