#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""inside.py BUILD CONDITION [PART-OF-A-NAME]

Runs in the guest (see interop.py): rxe0 is in this network namespace, nopin's
programs run in namespace b. What nopin sent is left in /out/capture.pcap.
"""
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import cases

RXE_ADDRESS, NOPIN_ADDRESS = "10.0.0.1", "10.0.0.2"
IN_B = ["ip", "netns", "exec", "b"]
SECONDS = 60  # emulated, on a machine that may have other things to do
# perftest measures the processor's clock; an emulated one is too irregular
# now and then, and then it reports nothing and fails.
CLOCK_FAILED = "Correlation coefficient"
LOSS = """table inet loss {
    chain input {
        type filter hook input priority 0
        udp dport 4791 numgen random mod 100 < 1 counter drop
    }
}
"""
# What nopin counted, at NOPIN_LOG=info: (name, title in the table)
COUNTERS = [("retransmits", "again"), ("timeouts", "t/o"),
            ("gaps_rx", "gaps"), ("dups_rx", "dups"),
            ("kernel_drops", "drops")]


class Program:
    """One running program; what it prints is kept in a file."""

    def __init__(self, argv, title, pass_fds=(), **env):
        self.path = f"/tmp/{title}"
        with open(self.path, "wb") as out:
            self.proc = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, pass_fds=pass_fds,
                env={**os.environ, "NOPIN_LOG": "info", **env})

    def listens(self, port):
        try:
            with open(f"/proc/{self.proc.pid}/net/tcp", encoding="ascii") as t4:
                lines = t4.read()
            with open(f"/proc/{self.proc.pid}/net/tcp6",
                      encoding="ascii") as t6:
                lines += t6.read()
        except OSError:
            return False
        return re.search(f":{port:04X} [0-9A-F]+:0000 0A", lines) is not None

    def locked_kb(self):
        """Memory that cannot be paged out: must be none of nopin's."""
        try:
            with open(f"/proc/{self.proc.pid}/status",
                      encoding="ascii") as status:
                return sum(int(kb) for kb in re.findall(
                    r"^Vm(?:Lck|Pin):\s+(\d+)", status.read(), re.M))
        except OSError:
            return 0

    def runs(self):
        return self.proc.poll() is None

    def stop(self):
        if self.runs():
            self.proc.kill()
        self.proc.wait()

    def output(self):
        with open(self.path, encoding="utf-8", errors="replace") as out:
            return out.read()


def pages_out():
    with open("/proc/vmstat", encoding="ascii") as vmstat:
        return int(re.search(r"^pswpout (\d+)", vmstat.read(), re.M)[1])


class Run:
    """One program as a pair, nopin in the one role and rxe in the other."""

    ports = itertools.count(20000)

    def __init__(self, build, program, role, mtu, condition):
        self.port = next(Run.ports)
        self.condition = condition
        self.program = program
        self.locked_kb = 0
        self.rxe_env = {}
        if condition.loss and program.leaves:
            self.rxe_env["LD_PRELOAD"] = (
                f"{build}/tests/net/interop/libinterop-linger.so")
        self.evict = [f"{build}/tests/net/interop/interop-evict"]
        nopin = [*IN_B, f"{build}/tools/nopin/nopin", "run", "--"]
        common = ["-p", str(self.port),
                  *([] if program.datagrams else ["-m", str(mtu)]),
                  *program.options.split()]
        self.nopin = [*nopin, program.name, "-d", "nopin0", program.gid, "0",
                      *common]
        self.rxe = [program.name, "-d", "rxe0", program.gid, "1", *common]
        self.role = role
        if role == "client":
            self.nopin.append(RXE_ADDRESS)
        else:
            self.rxe.append(NOPIN_ADDRESS)

    def problem(self, nopin, rxe, in_time, evicted):
        if not in_time:
            return f"did not end within {SECONDS} s"
        for one, title in ((nopin, "nopin"), (rxe, "rxe")):
            if one.proc.returncode:
                return f"{title}'s side ended with {one.proc.returncode}"
        client = nopin if self.role == "client" else rxe
        if self.program.expected not in client.output():
            return f"did not print {self.program.expected!r}"
        if self.locked_kb:
            return f"{self.locked_kb} kB of nopin's side locked"
        if self.condition.evicted and evicted < 100:
            return f"only {evicted} pages were evicted"
        return None

    def wait(self, nopin, done, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if nopin:
                self.locked_kb = max(self.locked_kb, nopin.locked_kb())
            if done():
                return True
            time.sleep(0.05)
        return False

    def once(self):
        """Returns (problem or None, nopin's Program, rxe's, pages evicted)."""
        before = pages_out()
        nopin = evict = None
        if self.role == "server":
            server = nopin = Program(self.nopin, "nopin")
        else:
            server = rxe = Program(self.rxe, "rxe", **self.rxe_env)
        self.wait(nopin, lambda: server.listens(self.port) or
                  not server.runs(), SECONDS)
        if self.role == "server":
            rxe = Program(self.rxe, "rxe", **self.rxe_env)
        else:
            nopin = Program(self.nopin, "nopin")
        if self.condition.evicted:
            evict = Program([*self.evict, str(nopin.proc.pid)], "evict")
        in_time = self.wait(
            nopin, lambda: not nopin.runs() and not rxe.runs(), SECONDS)
        for one in (nopin, rxe, evict):
            if one:
                one.stop()
        evicted = pages_out() - before
        return (self.problem(nopin, rxe, in_time, evicted), nopin, rxe,
                evicted)

    def run(self):
        """Returns (problem or None, what nopin printed, what rxe did, pages
        evicted)."""
        for _ in range(8):
            problem, nopin, rxe, evicted = self.once()
            if CLOCK_FAILED not in nopin.output() + rxe.output():
                break
        return problem, nopin.output(), rxe.output(), evicted


def run_pair(ours, theirs):
    """Runs a program on nopin and one on rxe, whose last argument is a stream socket
    to each other. Returns (their exit statuses, what they printed)."""
    ends = socket.socketpair()
    fds = [end.fileno() for end in ends]
    pair = (Program([*IN_B, *ours, str(fds[0])], "nopin", fds[:1],
                    NOPIN_ADDR="v1"),
            Program([*theirs, str(fds[1])], "rxe", fds[1:]))
    for end in ends:
        end.close()
    status = [one.proc.wait() for one in pair]
    return status, [one.output() for one in pair]


def run_word(build, reads):
    """A word changes while it is READ and, a quarter as often, sent: four packets
    each, none of them twice. Prints a line; returns whether all was well."""
    start = time.monotonic()
    sends = reads // 4
    argv = [f"{build}/tests/net/interop/interop-word", str(reads), str(sends)]
    status, (nopin, rxe) = run_pair(
        [f"{build}/tools/nopin/nopin", "run", "--", *argv, "owner"],
        [*argv, "peer"])
    packets = counted(nopin, "tx_packets")
    good = (status == [0, 0] and " changes" in nopin
            and packets == 4 * (reads + sends))
    print(f"word: {reads} READs, {sends} SENDs, {packets} packets of nopin, "
          f"{counted(nopin, 'retransmits')} again, "
          f"{time.monotonic() - start:.0f} s  {'ok' if good else status}")
    if not good:
        print(nopin, rxe, sep="\n", flush=True)
    return good


def run_notify(build, rounds):
    """WRITEs with immediate data, by rxe, raise a counter of a program on nopin,
    once each. Prints a line; returns whether all was well."""
    start = time.monotonic()
    status, (nopin, rxe) = run_pair(
        [f"{build}/tests/host/host-notify", str(rounds), "reader"],
        [f"{build}/tests/net/interop/interop-notify", str(rounds)])
    good = status == [0, 0] and counted(nopin, "notified") == rounds
    print(f"notify: {counted(nopin, 'notified')} of {rounds}, "
          f"{counted(nopin, 'fault_redirect')} packets redirected, "
          f"{time.monotonic() - start:.0f} s  {'ok' if good else status}")
    if not good:
        print(nopin, rxe, sep="\n", flush=True)
    return good


def run_behind(build, asker):
    """A requester whose PSNs are ahead of what its responder expects: each request
    ends. @asker: "nopin" or "rxe". Prints a line; returns whether all was well."""
    start = time.monotonic()
    argv = [f"{build}/tests/net/interop/interop-behind"]
    roles = ["asker", "target"] if asker == "nopin" else ["target", "asker"]
    status, (nopin, rxe) = run_pair(
        [f"{build}/tools/nopin/nopin", "run", "--", *argv, roles[0]],
        [*argv, roles[1]])
    ended = (nopin if asker == "nopin" else rxe).count("behind: it ends")
    good = status == [0, 0] and ended == 2
    print(f"behind, asked by {asker}: {ended} of 2 ended, "
          f"{time.monotonic() - start:.0f} s  {'ok' if good else status}")
    if not good:
        print(nopin, rxe, sep="\n", flush=True)
    return good


def counted(text, name):
    found = re.search(rf"^nopin: info: {name}: (\d+)", text, re.M)
    return int(found[1]) if found else 0


def command(*argv):
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


def prepare(condition):
    if condition.captured:
        command(*IN_B, "ethtool", "-K", "v1", "tx-udp-segmentation", "off")
    if condition.loss:
        for where in ([], IN_B):
            subprocess.run([*where, "nft", "-f", "-"], input=LOSS, text=True,
                           check=True)
    if condition.evicted:
        with open("/sys/block/zram0/disksize", "w", encoding="ascii") as size:
            size.write("512M")
        command("mkswap", "/dev/zram0")
        command("swapon", "/dev/zram0")


def start_capture():
    capture = subprocess.Popen(
        [*IN_B, "dumpcap", "-q", "-P", "-B", "64", "-i", "v1", "-f",
         f"udp and src host {NOPIN_ADDRESS}", "-w", "/tmp/capture.pcap"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True)
    while not os.path.exists("/tmp/capture.pcap"):
        if capture.poll() is not None:
            sys.exit(f"dumpcap: {capture.stderr.read()}")
        time.sleep(0.1)
    return capture


def end_capture(capture):
    """Returns whether every packet was captured."""
    capture.send_signal(signal.SIGINT)
    said = capture.communicate()[1]
    shutil.copy("/tmp/capture.pcap", "/out/capture.pcap")
    found = re.search(r"received/dropped on interface .*: (\d+)/(\d+)", said)
    if found and found[2] == "0":
        return True
    print(f"the capture is not complete: {said}")
    return False


def lost_both_ways():
    """Did the loss come about? A condition that never was tests nothing."""
    good = True
    for where in ([], IN_B):
        said = subprocess.run([*where, "nft", "list", "table", "inet", "loss"],
                              check=True, capture_output=True,
                              text=True).stdout
        packets = re.search(r"counter packets (\d+)", said)[1]
        print(f"lost on the way to {'nopin' if where else 'rxe'}: {packets}")
        good = good and packets != "0"
    return good


def run_case(build, case, condition):
    """Runs a case and prints its line; returns whether all was well."""
    program, role, mtu = case
    start = time.monotonic()
    problem, nopin, rxe, evicted = Run(
        build, program, role, mtu, condition).run()
    numbers = "".join(f"{counted(nopin, name):7}" for name, _ in COUNTERS)
    print(f"{program.name:16}{role:8}{mtu:5}{numbers}{evicted:8}"
          f"{time.monotonic() - start:7.1f} s  {problem or 'ok'}", flush=True)
    if problem:
        for title, text in (("nopin", nopin), ("rxe", rxe)):
            for line in text.splitlines()[-40:]:
                print(f"  {title} | {line}", flush=True)
    return problem is None


def main():
    build, name = sys.argv[1:3]
    condition = cases.CONDITIONS[name]
    chosen = [case for case in cases.chosen(name)
              if all(part in case[0].name for part in sys.argv[3:])]
    prepare(condition)
    capture = start_capture() if condition.captured else None
    print(f"{name + ':':16}nopin is  MTU"
          + "".join(f"{title:>7}" for _, title in COUNTERS) + " evicted")
    good = sum(run_case(build, case, condition) for case in chosen)
    if condition.words and not sys.argv[3:]:
        chosen.append("word")
        good += run_word(build, condition.words)
    if condition.notified and not sys.argv[3:]:
        chosen.append("notify")
        good += run_notify(build, condition.notified)
    for asker in ("nopin", "rxe") if condition.behind else ():
        if not sys.argv[3:] or "behind" in sys.argv[3:]:
            chosen.append("behind")
            good += run_behind(build, asker)
    complete = not capture or end_capture(capture)
    if condition.loss and not lost_both_ways():
        complete = False
    print(f"{name}: {good} passed, {len(chosen) - good} failed", flush=True)
    return 0 if complete and chosen and good == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
