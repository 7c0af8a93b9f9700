# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Suspension: moving the memory of regions under traffic (i_move.c)."""
import json
import os
import re
import statistics
import subprocess
import threading

from lab import MIB, Failed, Output, Skipped, size, us
from programs import finish, kill, spawn

TITLE = "Suspension: memory moved under live traffic"
ABOUT = """Bestler's suspension. A region is suspended, its memory moved and the
region resumed while a peer WRITEs to it: the pause that the peer sees, over the
size of the region and the way it is moved (all of it was touched before). Then an
unmodified ib_write_bw whose server's region gets new memory from below, by
`nopin move --recreate`, every 100 ms; once more with all data checked. Then a
region that is suspended for long while another connection of the same two NICs
goes on."""
BUDGET_S = (100, 60)

SIZES = (MIB // 256, MIB, 16 * MIB, 256 * MIB)
KINDS = {
    "control": "left alone (1 ms)",
    "nothing": "suspend, resume", "update": "copied by the program, updated",
    "recreate": "nopin move --recreate", "file": "nopin move --to-file",
    "node": "nopin move --to-node 0"}
PERIOD_S = 0.1
SLACK_US = 200


def pauses(lab, found):
    """Return: (pause - move - a WRITE) in us, all medians."""
    sizes = SIZES[:3] if lab.quick else SIZES
    rounds = 3 if lab.quick else 9
    rows, lines, over = [], {}, []
    for kind, words in KINDS.items():
        for nbytes in sizes:
            out = found.attempt(f"{words}, {size(nbytes)}", lab.own, "i_move",
                                kind, nbytes, rounds)
            if not out:
                break
            move, pause, usual, inside = (
                statistics.median(float(r[i]) for r in out.rows["round"])
                for i in range(4))
            retries = sum(out.counter.get(("writer", name), 0) for name in
                          ("timeouts", "rnr_rx", "naks_rx"))
            rows.append([words, size(nbytes), us(move), us(pause),
                         us(inside) if inside else "-", us(usual),
                         str(retries)])
            lines.setdefault(words, []).append((nbytes, max(pause, 0.1)))
            if kind != "control":
                over.append((pause - move, f"{words}, {size(nbytes)}"))
            if retries:
                raise Failed(f"{words}: {retries} retries")
    found.table("the longest WRITE of 8 bytes that was on its way then", [
        "moved by", "region", "the move alone", "peer-visible pause",
        "pause inside the NIC", "WRITE otherwise", "retries"], rows)
    found.lines("i_pause", "pause over region size", "region", "us", lines,
                log="xy", xsize=True)
    return over


class Mover:
    """Gives all regions of a process new memory, in turns, all the time."""

    def __init__(self, lab, pid=None):
        self.lab, self.pid, self.process = lab, pid, None
        self.times, self.error = [], None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.begin)
        self.thread.start()

    def told(self, *pid):
        out = subprocess.run([self.lab.nopin[0], "stat", *map(str, pid),
                              "--json"], text=True, capture_output=True,
                             check=False)
        return json.loads(out.stdout) if out.stdout else None

    def find(self):
        """Who is written to."""
        for one in self.told() or []:
            told = self.told(one["pid"])
            if told and told["nic"]["counters"]["rx_bytes"] > 4 * MIB:
                return one["pid"]
        return None

    def begin(self):
        while not self.process and not self.stop.wait(PERIOD_S):
            self.pid = self.pid or self.find()
            told = self.pid and self.told(self.pid)
            if told and told["regions"]:
                self.process = spawn(
                    [self.lab.path("i_mover"), str(self.pid),
                     str(int(PERIOD_S * 1000)),
                     *(str(r["key"]) for r in told["regions"])], {},
                    stdin=subprocess.PIPE)

    def end(self):
        self.stop.set()
        self.thread.join()
        if not self.process:
            return
        try:
            out = Output(finish(self.process, "i_mover", 20))
            self.times = [float(row[0]) for row in out.rows.get("move", [])]
        except Skipped as why:  # not raised: what was moved may have failed
            self.error = str(why)
        finally:
            kill(self.process)


def bandwidth(text):
    """MiB/s on average."""
    found = re.findall(r"^ *\d+ +\d+ +[\d.]+ +([\d.]+)\s", text, re.MULTILINE)
    if not found:
        raise Failed("ib_write_bw printed no result")
    return float(found[-1])


def perftest(lab, found):
    """Return: throughput while moved against not, or None."""
    seconds, turns = (3, 1) if lab.quick else (5, 3)
    command = f"ib_write_bw -s 65536 -D {seconds}"
    alone, moved, times = [], [], []
    for _ in range(turns):
        alone.append(bandwidth(lab.perftest(command)))
        movers = []

        def meanwhile(server, _client):
            movers.append(Mover(lab, server.pid))
        try:
            moved.append(bandwidth(lab.perftest(command, meanwhile=meanwhile)))
        finally:
            for mover in movers:
                mover.end()
        if movers[0].error:
            found.skip("ib_write_bw under nopin move", movers[0].error)
            return None
        times += movers[0].times
    if not times:
        raise Failed("nothing was moved under ib_write_bw")
    ratio = statistics.median(m / a for m, a in zip(moved, alone))
    found.table("ib_write_bw, 64 KiB, unmodified", [
        "left alone", "moved every 100 ms", "ratio", "moves", "a move takes"],
        [[f"{statistics.median(alone):.0f} MiB/s",
          f"{statistics.median(moved):.0f} MiB/s", f"{ratio:.2f}",
          str(len(times)), us(statistics.median(times))]])
    return ratio


def verified(lab, found):
    mover = Mover(lab)
    try:
        n = lab.verified("ib_write_bw -s 16384 -D 3", evict_ms=0)
    finally:
        mover.end()
    if mover.error:
        found.skip("ib_write_bw, data checked", mover.error)
        return
    if not mover.times:
        raise Failed("nothing was moved while data was checked")
    found.see(f"With the verifier preloaded into both of an unmodified "
              f"ib_write_bw, {n} messages were right while memory was moved "
              f"{len(mover.times)} times.")


def innocent(lab, found):
    """Return: p99 during / before."""
    seconds = 3 if lab.quick else 10
    program = os.path.join(lab.build, "tests", "host", "host-suspend")
    process = spawn([program, str(seconds)], {})
    try:
        out = finish(process, "host-suspend", lab.patience(60))
    finally:
        kill(process)
    got = re.search(r"p99: ([\d.]+) us before, ([\d.]+) us during", out)
    if not got:
        raise Failed("host-suspend printed no result")
    before, during = float(got[1]), float(got[2])
    found.table(f"another region's WRITEs of 8 bytes, p99, {seconds} s", [
        "before", "while one was suspended", "ratio"],
        [[us(before), us(during), f"{during / before:.2f}"]])
    return during / before


def run(lab, found):
    over = pauses(lab, found)
    worst = max(over, default=None)
    target = f"pause <= time of the move + {SLACK_US} us"
    found.verdict(target, worst and worst[0] <= SLACK_US,
                  f"{sum(o <= SLACK_US for o, _ in over)} of {len(over)}; the "
                  f"worst is {worst[0]:.0f} us more ({worst[1]})"
                  if worst else "see what was skipped")
    ratio = found.attempt("ib_write_bw under nopin move", perftest, lab, found)
    found.verdict("throughput >= 0.9 under a move every 100 ms, no error",
                  ratio and ratio >= 0.9,
                  f"{ratio:.2f}" if ratio else "see what was skipped")
    found.attempt("ib_write_bw, data checked", verified, lab, found)
    ratio = found.attempt("a long suspension", innocent, lab, found)
    found.verdict("an innocent region's p99 is unchanged (<= 1.1 x) during a "
                  "long suspension", ratio and ratio <= 1.1,
                  f"{ratio:.2f} x" if ratio else "see what was skipped")
    if worst:
        best = min(over)
        found.see(f"What a peer sees is the move and {best[0]:.0f} to "
                  f"{worst[0]:.0f} us; nobody retried.")
