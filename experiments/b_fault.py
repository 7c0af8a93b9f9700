# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The cost of one fault (b_fault.c, b_evict.c)."""
import re
import subprocess

from lab import MIB, Failed, Output, Skipped, Swap, is_root, quantile, size, us
from programs import kill, skip_reason, spawn, telling

TITLE = "The cost of one fault"
ABOUT = """WRITEs of 4 KiB and of 4 MiB to memory that is there and to memory
that is not, in turns, beside the CPU's own touch of as much cold memory; the
target's memory cold, or the source's. "Added" is the difference of neighbours,
as the requester sees it. Stages: what the NIC's flight recorder says of the
last faults of each round; of the time between fault and answer, "page in" is
what the CPU needs and "ticket" the rest; "resume" is what else the peer sees.
Then an unmodified ib_write_lat whose buffers are swapped out under it. NPF
measured 220 us for 4 KiB and 350 us for 4 MiB, PART about 38 us, NP-RDMA +3.5
to 5.7 us for a minor fault and +60 us for a major one."""
BUDGET_S = (130, 120)

KINDS = {"minor": "never touched", "swap": "swapped out",
         "file": "file on disk", "slow1": "slow: 1 ms"}
BIG = 4 * MIB
SMALL_MESSAGES, BIG_MESSAGES = 64, 4


def shape(lab, kind, n):
    """Messages a round, rounds."""
    if n == BIG:
        return (2, 2) if lab.quick or kind == "slow1" else (BIG_MESSAGES, 8)
    if lab.quick:
        return 16, 2
    return (32, 4) if kind == "slow1" else (SMALL_MESSAGES, 16)


def one_kind(lab, kind, side, n, ahead="message"):
    """A fault is to be met, not foreseen: messages lie side by side."""
    messages, rounds = shape(lab, kind, n)
    return lab.own("b_fault", kind, side, n, messages, rounds,
                   env={"NOPIN_AHEAD": ahead})


def costs(lab, found, swap):
    got, rows = {}, []
    for n in (4096, BIG):
        for kind, words in KINDS.items():
            if n == BIG and kind == "slow1":
                continue  # a thousand pages of 1 ms each
            for side in ("remote", "local"):
                if kind == "swap" and swap.reason:
                    found.skip(f"{words}, {side}", swap.reason)
                    continue
                out = found.attempt(f"{kind}, {side}", one_kind, lab, kind,
                                    side, n)
                if out:
                    got[n, kind, side] = out
                    rows.append(row(n, words, side, out))
    found.table("WRITE to or from memory that is not there, medians",
                ["WRITE of", "memory", "cold side", "CPU's touch", "warm WRITE",
                 "cold WRITE", "added", "added p99", "added - touch",
                 "tickets a fault"], rows)
    for n in (4096, BIG):
        kinds = [k for k in KINDS if (n, k, "remote") in got]
        pick = [got[n, k, "remote"].dist for k in kinds]
        found.bars(f"b_cost_{'4k' if n == 4096 else '4m'}",
                   f"WRITE of {size(n)}: CPU's touch, warm, cold", "us",
                   [KINDS[k] for k in kinds],
                   {"CPU's own touch": [d["cpu"][50] for d in pick],
                    "warm WRITE": [d["warm"][50] for d in pick],
                    "cold WRITE": [d["cold"][50] for d in pick]}, log=True)
    return got


AHEAD = {"page": "touch-a-page", "message": "touch-ahead"}


def touches(lab, found):
    """The rest of the message fetched with its first page, or page by page."""
    rows = []
    for kind in ("minor", "file"):
        for ahead, words in AHEAD.items():
            out = found.attempt(f"{kind}, {words}", one_kind, lab, kind,
                                "remote", BIG, ahead)
            if out:
                rows.append([KINDS[kind], words, us(out.dist["cold"][50]),
                             us(out.dist["added"][50]),
                             str(out.counter["faulter", "tickets"])])
    found.table(f"WRITE of {size(BIG)} to a cold target, medians",
                ["memory", "", "cold WRITE", "added", "tickets"], rows)


def row(n, words, side, out):
    cpu, added = out.dist["cpu"], out.dist["added"]
    faults = out.counter["faulter", "faults"]
    return [size(n), words, "target" if side == "remote" else "source",
            us(cpu[50]), us(out.dist["warm"][50]), us(out.dist["cold"][50]),
            us(added[50]), us(added[99]), us(added[50] - cpu[50]),
            f"{out.counter['faulter', 'tickets'] / max(faults, 1):.2f}"]


# --- stages ------------------------------------------------------------------

STAGES = ("detect", "ticket", "page in", "install, place", "resume")
EVENT = re.compile(r"^\s+-([\d.]+) us (\w+), psn 0x(\w+), .*? 0x(\w+), "
                   r".*? (\d+)$", re.MULTILINE)


def traced(lab, pid):
    done = subprocess.run([lab.nopin[0], "trace", str(pid)], text=True,
                          capture_output=True, check=False, timeout=10)
    if done.returncode:
        raise Failed(f"nopin trace: {done.stderr.strip()}")
    return [(-float(ago), name)
            for ago, name, *_ in EVENT.findall(done.stdout)]


def recorded(events):
    """us from RX to FAULT to RESOLVED to PLACED, for each fault of which the
    recorder has the whole story."""
    at = {}
    for when, name in events:
        if name == "RX":
            at = {}
        at.setdefault(name, when)
        if name == "PLACED":
            if len(at) == 4:
                yield (at["FAULT"] - at["RX"], at["RESOLVED"] - at["FAULT"],
                       at["PLACED"] - at["RESOLVED"])
            at = {}


def stages_of(faults, dist):
    """What the recorder does not know: reading the page in is what the CPU
    needs for it, and the peer sees the rest."""
    detect, wait, place = (quantile([f[i] for f in faults], 50)
                           for i in range(3))
    page_in, added = dist["cpu"][50], dist["added"][50]
    return dict(zip(STAGES, (detect, max(wait - page_in, 0), page_in, place,
                             max(added - detect - wait - place, 0))))


def held(lab, kind):
    """Runs b_fault and asks its NIC after each round.

    Return: number of faults, median of each stage.
    """
    messages, rounds = 16, 2 if lab.quick else 16
    process = spawn([lab.path("b_fault"), kind, "remote", "4096",
                     str(messages), str(rounds), "hold"],
                    {"NOPIN_FAULT": "redirect", "NOPIN_AHEAD": "message"},
                    stderr=subprocess.DEVNULL,
                    stdin=subprocess.PIPE, cwd=lab.out)
    found, text = [], ""
    try:
        for line in process.stdout:
            text += line
            if line.startswith("hold\t"):
                found += recorded(traced(lab, line.split()[2]))
                process.stdin.write("\n")
                process.stdin.flush()
        if process.wait(lab.patience(10)) == 77:
            raise Skipped(skip_reason(text))
        if process.returncode:
            raise Failed(f"b_fault: {telling(text)}")
    finally:
        kill(process)
    if not found:
        raise Failed("the flight recorder tells of no fault")
    return len(found), stages_of(found, Output(text).dist)


def stages(lab, found, swap):
    rows, bars, labels = [], {stage: [] for stage in STAGES}, []
    for kind, words in KINDS.items():
        if kind == "slow1" or kind == "swap" and swap.reason:
            continue
        seen = found.attempt(f"stages, {kind}", held, lab, kind)
        if not seen:
            continue
        faults, middle = seen
        labels.append(words)
        for stage in STAGES:
            bars[stage].append(middle[stage])
        rows.append([words, str(faults), *(us(middle[s]) for s in STAGES),
                     us(sum(middle.values()))])
    found.table("stages of a fault at the target, NOPIN_FAULT=redirect, "
                "medians",
                ["memory", "faults", *STAGES, "sum"], rows)
    found.bars("b_stages", "stages of a 4 KiB fault at the target", "us",
               labels, bars)


# --- not to fetch what is overwritten -----------------------------------------


def overwriting(lab, found, swap):
    """READs into swapped-out pages: nobody may look there before a completion,
    so what they held may be dropped."""
    target = "overwrite of swapped-out pages is faster than fetching them"
    got, rows = {}, []
    for strategy in ("redirect", "overwrite"):
        what = f"READ into swapped-out pages, {strategy}"
        if swap.reason:
            found.skip(what, swap.reason)
            continue
        out = found.attempt(what, lab.own, "b_fault", "swap", "into", 65536,
                            *((8, 2) if lab.quick else (16, 8)),
                            env={"NOPIN_FAULT": strategy})
        if out:
            got[strategy] = out.dist["added"][50]
            rows.append([strategy, us(out.dist["warm"][50]),
                         us(out.dist["cold"][50]), us(got[strategy]),
                         str(out.counter["faulter", "faults"])])
    found.table("READ of 64 KiB into swapped-out pages, medians",
                ["strategy", "warm", "cold", "added", "faults"], rows)
    if len(got) < 2:
        found.verdict(target, None, "see what was skipped")
        return
    found.verdict(target, got["overwrite"] < got["redirect"],
                  f"it adds {us(got['overwrite'])}, fetching "
                  f"{us(got['redirect'])}")


# --- an unmodified program ---------------------------------------------------


def swapped_in():
    """Pages, by the kernel's own counter."""
    with open("/proc/vmstat", encoding="ascii") as stat:
        return int(re.search(r"^pswpin (\d+)", stat.read(), re.MULTILINE)[1])


def evicted(lab, n):
    """ib_write_lat of @n bytes, its buffers swapped out every few ms."""
    # the larger take 30 s to be swapped in again and again 2000 times
    count, told = 100 if lab.quick else 500 if n == MIB else 2000, []
    before = swapped_in()

    def meanwhile(server, client):
        for process in (server, client):
            told.append(spawn([lab.path("b_evict"), str(process.pid), str(n),
                               "10"], {}))

    # a server and its client are "nopin run", which becomes the program
    latency = {}
    for name, call in (("left alone", None), ("swapped out", meanwhile)):
        out = lab.perftest(f"ib_write_lat -s {n} -n {count} -U",
                           meanwhile=call)
        latency[name] = [float(x) for x in
                         re.findall(r"^\d+, ([\d.]+)", out, re.MULTILINE)]
        if not latency[name]:
            raise Failed("ib_write_lat -U: no result")
    pages = swapped_in() - before
    for process in told:
        kill(process)
    if not pages:
        raise Skipped("nothing of another process could be swapped out")
    return latency, pages


def verified(lab, found):
    checked = found.attempt("ib_write_lat, data checked", lab.verified,
                            "ib_write_lat -s 65536 -n "
                            f"{200 if lab.quick else 1000}")
    if checked:
        found.see(f"With the verifier preloaded into both of an unmodified "
                  f"ib_write_lat, whose memory went every 10 ms, {checked} "
                  "messages were compared, and none was wrong.")


def unmodified(lab, found, swap):
    verified(lab, found)
    if swap.reason:
        found.skip("ib_write_lat, swapped out", swap.reason)
        return
    if not is_root():
        found.skip("ib_write_lat, swapped out",
                   "swapping out memory of other processes needs root")
        return
    rows, curves = [], {}
    for n in (65536, MIB):
        got = found.attempt(f"ib_write_lat, swapped out, {size(n)}", evicted,
                            lab, n)
        if not got:
            continue
        for name, values in got[0].items():
            rows.append([size(n), name, str(len(values)), *(
                us(quantile(values, q)) for q in (50, 90, 99, 99.9, 100)),
                str(got[1] if name == "swapped out" else 0)])
            curves[f"{size(n)}, {name}"] = [
                (q, quantile(values, q)) for q in
                (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9)]
    found.table("unmodified ib_write_lat, half round trip; all pages of its "
                "buffers are swapped out every 10 ms",
                ["message", "", "messages", "p50", "p90", "p99", "p99.9",
                 "max", "pages swapped in"], rows)
    found.lines("b_write_lat", "ib_write_lat whose buffers are swapped out",
                "quantile, %", "us", curves, "y")


# --- all of it ---------------------------------------------------------------


def extra(out):
    return out.dist["added"][50] - out.dist["cpu"][50]


def judge(found, got, wake):
    minor = got.get((4096, "minor", "remote"))
    if minor:
        more = extra(minor)
        found.verdict("a minor fault adds at most 1.5 us, peer-visible, over "
                      "the CPU's own first touch", more <= 1.5,
                      f"{us(more)} more than a touch of "
                      f"{us(minor.dist['cpu'][50])}")
        found.see(f"A WRITE of 4 KiB to a page never touched takes "
                  f"{us(minor.dist['added'][50])} more than one to a page that "
                  f"is there; the CPU's own touch takes "
                  f"{us(minor.dist['cpu'][50])}.")
    for kind in ("swap", "file"):
        major = got.get((4096, kind, "remote"))
        limit = 15 + wake
        target = (f"a major fault ({KINDS[kind]}) adds at most 15 us and one "
                  "thread wake-up over the CPU's own")
        if not major:
            found.verdict(target, None, "see what was skipped")
            continue
        found.verdict(target, extra(major) <= limit,
                      f"{us(extra(major))} more than a touch of "
                      f"{us(major.dist['cpu'][50])}; a wake-up takes "
                      f"{us(wake)}")
    big = got.get((BIG, "minor", "remote"))
    if big:
        touch, added, cold = (big.dist[x][50] for x in ("cpu", "added", "cold"))
        found.verdict("a cold 4 MiB WRITE costs at most 1.2 x the CPU's own "
                      "first touch of 4 MiB", added <= 1.2 * touch,
                      f"that it is cold costs {us(added)}, {added / touch:.2f} "
                      f"x the touch of {us(touch)}; all of it takes "
                      f"{us(cold)}, {cold / touch:.2f} x")
        found.see(f"One of 4 MiB takes {us(added)} more than a warm one, "
                  f"{added / (BIG / 4096) * 1e3:.0f} ns a page.")


def run(lab, found):
    wake = lab.own("b_fault", "wake").dist["wake"][50]
    found.see(f"Waking another thread takes {us(wake)}.")
    with Swap() as swap:
        got = costs(lab, found, swap)
        touches(lab, found)
        stages(lab, found, swap)
        overwriting(lab, found, swap)
        unmodified(lab, found, swap)
    judge(found, got, wake)
