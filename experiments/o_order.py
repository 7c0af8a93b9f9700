# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Order over a network that has none (tests/net/relay.c)."""
import os
import re
import subprocess

import pair
from lab import Failed, Skipped, is_root, us

TITLE = "Order over a network that has none"
ABOUT = """NetVM's window of sequence numbers lets data come as it likes and
notifications be delivered in order. Here a relay between two network namespaces
gets single packets of 1 KiB and keeps some of them for up to 100 us, while others
pass; or each of the sockets that NOPIN_PATHS sprays over has a path of its own, the
longest 100 us longer than the shortest. ib_write_bw, 64 KiB, and ib_write_lat,
unmodified. Nothing is lost, so nothing need be sent again. The relay is a program
on the same host and sets the speed: what counts are ratios."""
BUDGET_S = (100, 400)

SHARES = (0, 1, 5, 10, 25, 50)
QUICK = (0, 50)
DELAY_US = 100
PATHS = (1, 4)
AGAIN_PERCENT = 1
NO_PLACE = ("drop_no_slot", "beyond_credit", "kernel_drops")


class Network:
    """Two namespaces, and between them the relay."""

    def __init__(self, lab, percent, paths):
        self.lab, self.relay = lab, None
        self.names = [f"nopin-{side}-{os.getpid()}" for side in "ab"]
        self.report = lab.path("o_relay.txt")
        self.how = [str(percent * 10), str(DELAY_US),
                    str(DELAY_US if paths > 1 else 0)]

    def __enter__(self):
        if not is_root():
            raise Skipped("network namespaces need root")
        try:
            for name in self.names:
                self.ip("netns", "add", name)
            self.begin()
        except BaseException:
            self.__exit__()
            raise
        os.environ.update(NS_A=self.names[0], NS_B=self.names[1],
                          ADDR_A="10.77.0.1")
        return pair.Place(self.lab.build, in_netns=True)

    def ip(self, *args):
        done = subprocess.run(["ip", *args], capture_output=True, text=True,
                              check=False)
        if done.returncode:
            raise Skipped("network namespaces cannot be made, even by root: "
                          + done.stderr.strip())

    def begin(self):
        program = os.path.join(self.lab.build, "tests", "net", "relay")
        done = subprocess.run([program, *self.how, *self.names, self.report],
                              stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise Skipped("no tun devices")
        self.relay = int(done.stdout)
        for i, name in enumerate(self.names):
            self.ip("-n", name, "link", "set", "lo", "up")
            self.ip("-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev",
                    "n0")
            # what the queue of a tun device cannot take is lost
            self.ip("-n", name, "link", "set", "n0", "mtu", "1500",
                    "txqueuelen", "16384", "up")
            self.ip("-n", name, "route", "add", "default", "dev", "n0")

    def __exit__(self, *_):
        if self.relay:
            os.kill(self.relay, 15)
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], check=False,
                           stderr=subprocess.DEVNULL)


def numbers(output):
    """The line of figures behind perftest's heading."""
    found = re.search(r"#bytes.*\n(.*)", output)
    if not found:
        raise Failed("perftest printed no figures")
    # one may be -nan, and what the NIC says may follow in the same line
    return [float(n) for n in re.findall(r"-?nan|[\d.]+", found[1])]


class Measured:
    """One share of packets overtaken, one number of paths."""

    def __init__(self):
        self.mb_s = self.median_us = self.p99_us = 0
        self.sent = self.again = self.no_place = 0

    def count(self, *programs):
        for program in programs:
            counted = program.counters()
            self.sent += counted.get("tx_packets", 0)
            self.again += (counted.get("retransmits", 0) +
                           counted.get("read_restarts", 0))
            self.no_place += sum(counted.get(name, 0) for name in NO_PLACE)

    def again_percent(self):
        return 100 * self.again / max(self.sent, 1)


def one(lab, percent, paths):
    result, scale = Measured(), 1 if lab.quick else 10
    with Network(lab, percent, paths) as place:
        for program, args in (("ib_write_bw", ["-n", str(300 * scale)]),
                              ("ib_write_lat", ["-n", str(300 * scale)])):
            problem, server, client, _ = pair.run_pair(
                place, program, [*args, "-F"], {"NOPIN_PATHS": str(paths)},
                lab.patience(60), False)
            if problem:
                raise Failed(f"{program}, {percent} %, {paths} paths: "
                             f"{problem}")
            result.count(server, client)
            figures = numbers(client.output())
            if program == "ib_write_bw":
                result.mb_s = figures[3]
            else:
                result.median_us, result.p99_us = figures[4], figures[7]
    return result


def row(percent, paths, m, base):
    return [f"{percent} %", str(paths), f"{m.mb_s:.0f}",
            f"{m.mb_s / base.mb_s:.2f}", us(m.median_us), us(m.p99_us),
            f"{m.again_percent():.2f} %", str(m.no_place)]


def run(lab, found):
    measured, shares = {}, QUICK if lab.quick else SHARES
    for paths in PATHS:
        for percent in shares:
            m = found.attempt(f"{percent} % overtaken, {paths} paths", one,
                              lab, percent, paths)
            if m:
                measured[percent, paths] = m
    target = "in order, no drop; without loss nothing is sent again"
    base = measured.get((0, 1))
    if not base:
        found.verdict(target, None, "see what was skipped")
        return
    found.table("WRITE, by how many packets are overtaken",
                ["overtaken", "paths", "MB/s", "of in order", "half round "
                 "trip, p50", "p99", "sent again", "without a place"],
                [row(*key, m, base) for key, m in measured.items()])
    found.lines("o_speed", "WRITE of 64 KiB over a network without order",
                "packets overtaken, %", "MB/s",
                {f"{p} path" + "s" * (p > 1):
                 [(share, m.mb_s) for (share, n), m in measured.items()
                  if n == p] for p in PATHS})
    worst = max(measured.values(), key=Measured.again_percent)
    lost = sum(m.no_place for m in measured.values())
    found.see(f"With {shares[-1]} % of the packets overtaken a WRITE has "
              + " and ".join(f"{m.mb_s / base.mb_s:.2f} (NOPIN_PATHS={p})"
                             for (share, p), m in measured.items()
                             if share == shares[-1])
              + " of the speed of one path in order.")
    found.verdict(target, lost == 0 and
                  worst.again_percent() <= AGAIN_PERCENT,
                  f"{lost} packets had no place; at most "
                  f"{worst.again_percent():.2f} % were sent again")
