#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""interop.py [--loss] BUILD: nopin against the kernel's rdma_rxe.

Runs inside guest.sh: rxe0 is 10.0.0.1, nopin runs in namespace b at 10.0.0.2.
Each program runs with nopin as the client and as the server, at each path MTU
(with --loss only the largest).
All packets are captured at rxe's end; tshark must be able to dissect those
that nopin sent. With --loss, 1 % of the packets is lost each way.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import pair

RXE, NOPIN = "10.0.0.1", "10.0.0.2"
IN_B = ["ip", "netns", "exec", "b"]
# -o: perftest gives its QP the peer's limit of outstanding READs; rxe's is 128.
PROGRAMS = {
    "ibv_rc_pingpong": "-n 200 -s 5000",
    "ib_write_bw": "-n 200 -s 20000",
    "ib_read_bw": "-n 200 -s 20000 -o 16",
    "ib_send_bw": "-n 200 -s 20000",
    "ib_atomic_bw": "-n 200 -o 16",
}
MTUS = ["256", "512", "1024"]
# perftest asks for it on both sides; rxe's GID index 1 is its IPv4 address
GID = {"ibv_rc_pingpong": "-g 1", "perftest": "-x 1"}
SECONDS = 180
# perftest measures the CPU's clock; on an emulated one it may fail to, which
# says nothing of nopin.
NO_CLOCK = "Correlation coefficient"
ATTEMPTS = 5
LOSS = """table inet loss {
    chain input {
        type filter hook input priority 0;
        udp dport 4791-65535 numgen random mod 100 < 1 counter drop
    }
}
"""


def place_of(build, nopin_serves):
    """rxe's side uses the installed library, nopin's side ours."""
    place = pair.Place(build)
    nopin, rxe = IN_B + place.server, []
    place.server, place.client = (nopin, rxe) if nopin_serves else (rxe, nopin)
    place.address = NOPIN if nopin_serves else RXE
    return place


def run_case(build, program, mtu, nopin_serves):
    gid = GID.get(program, GID["perftest"])
    args = f"{gid} -m {mtu} {PROGRAMS[program]}".split()
    side = "server" if nopin_serves else "client"
    start = time.monotonic()
    for _ in range(ATTEMPTS):
        problem, server, client = pair.run_pair(
            place_of(build, nopin_serves), program, args, {}, SECONDS)
        if not client or NO_CLOCK not in server.output() + client.output():
            break
    took = time.monotonic() - start
    print(f"{took:6.2f} s  {program} -m {mtu}, nopin is the {side}: "
          f"{problem or 'ok'}", flush=True)
    if problem:
        print(server.story("server") + (client.story("client") if client
                                        else ""), flush=True)
    return not problem


class Capture:
    """tshark on v0, the first 300 bytes of each packet."""

    def __init__(self, folder):
        self.file = os.path.join(folder, "capture.pcap")
        self.proc = subprocess.Popen(
            ["tshark", "-q", "-i", "v0", "-w", self.file,
             "-f", "udp port 4791 and src host " + NOPIN],
            stderr=subprocess.PIPE, text=True)
        for line in self.proc.stderr:
            if "Capturing on" in line:
                break

    def stop(self):
        time.sleep(1)  # what the kernel still holds
        self.proc.send_signal(signal.SIGINT)
        self.proc.wait()

    def count(self, display_filter):
        done = subprocess.run(
            ["tshark", "-n", "-r", self.file, "-Y", display_filter],
            check=True, capture_output=True, text=True)
        return done.stdout.count("\n"), done.stdout[:2000]


def check_capture(capture):
    packets, _ = capture.count("infiniband")
    broken, which = capture.count(
        "_ws.malformed or udp.length_bad or (udp.port == 4791 and "
        "not infiniband)")
    print(f"tshark: {packets} packets of nopin's dissected, {broken} broken")
    print(which, end="")
    return packets > 100 and broken == 0


def drops(namespace):
    text = subprocess.run(
        [*namespace, "nft", "list", "table", "inet", "loss"], check=True,
        capture_output=True, text=True).stdout
    return int(re.search(r"counter packets (\d+)", text)[1])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--loss", action="store_true")
    parser.add_argument("build")
    args = parser.parse_args()
    if "NOPIN_GUEST" not in os.environ:
        sys.exit("interop.py: runs inside guest.sh only")
    if args.loss:
        for namespace in ([], IN_B):
            subprocess.run([*namespace, "nft", "-f", "-"], input=LOSS,
                           text=True, check=True)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        capture = Capture(folder)
        for program in PROGRAMS:
            for mtu in MTUS[-1:] if args.loss else MTUS:
                for nopin_serves in (False, True):
                    results.append(run_case(args.build, program, mtu,
                                            nopin_serves))
        capture.stop()
        results.append(check_capture(capture))
    if args.loss:
        lost = [drops(namespace) for namespace in ([], IN_B)]
        print(f"packets dropped: {lost[0]} to rxe, {lost[1]} to nopin")
        results.append(min(lost) > 0)
    print(f"{sum(results)} passed, {results.count(False)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
