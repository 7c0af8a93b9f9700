# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""lab.py: what an experiment works with. A Lab runs programs and knows which
strategies and modes this NIC has; Findings collects what came out.

An experiment is a file LETTER_NAME.py with

  TITLE      one line
  ABOUT      what is done, and whose experiment it is; a paragraph
  BUDGET_S   (seconds it may take, under --quick: on a host that is busy)
  run(lab, found)

What this host cannot do is found.skip(what, reason) or raise Skipped.
"""
import os
import re
import shutil
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "bench"))
sys.path.append(os.path.join(TOP, "tests", "net"))
import pair  # noqa: E402
from programs import (  # noqa: E402
    LOOPBACK, Failed, Skipped, finish, kill, spawn)

# All that there are to compare; what the NIC at hand refuses is skipped.
STRATEGIES = ("adaptive", "inline", "park", "redirect", "resume", "rnr",
              "overwrite", "replay", "backup", "drop", "block")
MODES = ("ondemand", "pin", "pin-cache", "pin-op", "prefault", "copy")
DEFAULT = "(default)"

# The quantiles of a line "dist" (lib/out.c), in percent.
QUANTILES = (0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100)
MIB, GIB, TIB = 1 << 20, 1 << 30, 1 << 40


def size(n):
    for unit, name in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (1024, "KiB")):
        if n >= unit:
            return f"{n / unit:.4g} {name}"
    return f"{n:.0f} B"


def us(value):
    """Microseconds, in words of three digits."""
    for unit, name in ((1e6, "s"), (1e3, "ms")):
        if abs(value) >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value:.3g} us"


def quantile(values, percent):
    ordered = sorted(values)
    return ordered[int((len(ordered) - 1) * percent / 100)]


class Output:
    """What a program of ours printed: lines of fields.

    dist      series -> {"n", "mean", and each of QUANTILES}
    counter   (side, name) -> number
    rows      name -> [fields]
    """

    def __init__(self, text):
        self.dist, self.counter, self.rows = {}, {}, {}
        for line in text.splitlines():
            name, *fields = line.split("\t")
            if name == "dist":
                numbers = [float(x) for x in fields[1:]]
                self.dist[fields[0]] = {
                    "n": int(numbers[0]), "mean": numbers[1],
                    **dict(zip(QUANTILES, numbers[2:]))}
            elif name == "counter":
                self.counter[fields[0], fields[1]] = int(fields[2])
            elif fields:
                self.rows.setdefault(name, []).append(fields)

    def value(self, name):
        """The number of a line of that name."""
        return float(self.rows[name][-1][0])

    def total(self, name):
        """A counter of all sides together."""
        return sum(n for (_, what), n in self.counter.items() if what == name)


class Lab:
    def __init__(self, build, out, quick):
        self.build, self.out = os.path.abspath(build), os.path.abspath(out)
        self.quick = quick
        self.nopin = [os.path.join(self.build, "nopin"), "run", "--"]
        self.deadline = None
        self.valid = {name: self.ask(name)
                      for name in ("NOPIN_FAULT", "NOPIN_REG")}

    def ask(self, name):
        """The values that the NIC accepts: it lists them when it refuses."""
        program = os.path.join(self.build, "experiments", "null")
        done = subprocess.run([program], env={**os.environ, name: "?"},
                              capture_output=True, text=True, check=False)
        found = re.search(rf"{name}=\? .*valid: (.*)", done.stderr)
        if not found:
            raise Failed(f"{name}: the NIC does not say what it accepts")
        return found[1].split()

    def known(self, name, wanted):
        """(value, None, or why it cannot be had) for each of @wanted."""
        for value in wanted:
            yield value, None if value in self.valid[name] else \
                f"this NIC does not have {name}={value}"

    def strategies(self):
        return self.known("NOPIN_FAULT", STRATEGIES)

    def modes(self):
        return self.known("NOPIN_REG", MODES)

    # --- time ---

    def begin(self, seconds):
        self.deadline = time.monotonic() + seconds

    def left(self):
        return self.deadline - time.monotonic()

    def patience(self, most):
        """Before a program begins. What has begun may end."""
        if self.left() <= 0:
            raise Skipped("the time for this experiment was over")
        return most

    # --- programs ---

    def path(self, program):
        return os.path.join(self.build, "experiments", program)

    def own(self, program, *args, env=None, patience=30, before=()):
        """Runs a program of ours to its end. Return: Output."""
        args = [str(a) for a in args]
        process = spawn([*before, self.path(program), *args],
                        {**(env or {})}, cwd=self.out,
                        stderr=subprocess.PIPE)
        try:
            return Output(finish(process, " ".join([program, *args]),
                                 self.patience(patience)))
        finally:
            kill(process)

    def perftest(self, command, env=None, place=LOOPBACK, patience=120, **more):
        """Runs a pair of unmodified programs. Return: the client's output."""
        name = command.split()[0]
        if not shutil.which(name):
            raise Skipped(f"no {name}")
        env = {**({"NOPIN_ADDR": "lo"} if place is LOOPBACK else {}),
               **(env or {})}
        return place.pair(self.nopin + command.split() + ["-F"], "-p", env,
                          patience=self.patience(patience), **more)

    def verified(self, command, env=None, evict_ms=10, patience=30):
        """Runs a pair of unmodified programs with all that they move verified
        (tests/verify), in memory that is evicted so often. Return: how many
        messages were compared; Failed if any was wrong."""
        program, *args = command.split()
        if not shutil.which(program):
            raise Skipped(f"no {program}")
        with pair.Place(self.build, evict_ms=evict_ms) as place:
            problem, _, _, story = pair.run_pair(
                place, program, args, {"NOPIN_ADDR": "lo", **(env or {})},
                self.patience(patience), verify=True)
        if problem:
            raise Failed(f"{command}: {problem}")
        return sum(int(n) for n in re.findall(r"checked (\d+)", story))


class Swap:
    """There is swap: what the host has, or compressed memory (zram) of ours."""

    BYTES = GIB

    def __init__(self):
        self.device = self.reason = None

    def __enter__(self):
        with open("/proc/swaps", encoding="ascii") as swaps:
            if len(swaps.readlines()) > 1:
                return self
        try:
            self.make()
        except (OSError, subprocess.CalledProcessError) as why:
            self.reason = f"no swap, and none can be made: {why}"
            self.__exit__()
        return self

    def make(self):
        with open("/sys/class/zram-control/hot_add", encoding="ascii") as add:
            self.device = f"zram{int(add.read())}"
        with open(f"/sys/block/{self.device}/disksize", "w",
                  encoding="ascii") as disk:
            disk.write(str(self.BYTES))
        for command in (["mkswap"], ["swapon", "-p", "100"]):
            subprocess.run([*command, f"/dev/{self.device}"], check=True,
                           capture_output=True)

    def need(self):
        if self.reason:
            raise Skipped(self.reason)

    def __exit__(self, *_):
        if not self.device:
            return
        subprocess.run(["swapoff", f"/dev/{self.device}"], check=False,
                       capture_output=True)
        with open("/sys/class/zram-control/hot_remove", "w",
                  encoding="ascii") as remove:
            remove.write(self.device.removeprefix("zram"))
        self.device = None


def memory_group(text):
    """Where the kernel's /proc/self/cgroup @text says that our group's memory
    is limited: (directory below /sys/fs/cgroup, file of the limit)."""
    for line in text.splitlines():
        number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return f"/memory{path}".rstrip("/"), "memory.limit_in_bytes"
        if number == "0" and not controllers:
            unified = path.rstrip("/"), "memory.max"
    return unified


class MemoryLimit:
    """A memory cgroup (v1 or v2) of ours with a limit; @procs is the file that
    takes who is to be in it."""

    TOP = "/sys/fs/cgroup"

    def __init__(self, limit):
        self.limit, self.path = limit, None

    def __enter__(self):
        try:
            self.make()
        except (OSError, UnboundLocalError) as why:
            self.__exit__()
            raise Skipped("no memory limit can be set here (cgroup): "
                          f"{why}") from why
        return self

    def make(self):
        with open("/proc/self/cgroup", encoding="ascii") as groups:
            below, name = memory_group(groups.read())
        if name == "memory.max":
            # who has processes of its own gives its children no controller
            with open(f"{self.TOP}/cgroup.subtree_control",
                      encoding="ascii") as controllers:
                below = below if "memory" not in controllers.read() else ""
        path = f"{self.TOP}{below}/nopin-{os.getpid()}"
        os.mkdir(path)
        self.path = path
        with open(f"{path}/{name}", "w", encoding="ascii") as limit:
            limit.write(str(self.limit))

    @property
    def procs(self):
        return f"{self.path}/cgroup.procs"

    def __exit__(self, *_):
        until = time.monotonic() + 5
        while self.path and time.monotonic() < until:
            try:  # who was killed may not be gone yet
                os.rmdir(self.path)
                self.path = None
            except OSError:
                time.sleep(0.01)


def is_root():
    return os.geteuid() == 0


# --- what came out -----------------------------------------------------------


class Findings:
    """Of one experiment; report.py shows it."""

    def __init__(self):
        self.tables, self.plots, self.seen = [], [], []
        self.verdicts, self.skipped = [], []
        self.failed = None

    def table(self, title, head, rows):
        """@rows: lists of text."""
        if rows:
            self.tables.append((title, list(head),
                                [[str(cell) for cell in row] for row in rows]))

    def lines(self, name, title, xlabel, ylabel, series, log="", xsize=False):
        """A plot. @series: label -> [(x, y)]; @log: axes; @xsize: in bytes."""
        series = {label: points for label, points in series.items() if points}
        if series:
            self.plots.append({
                "kind": "lines", "name": name, "title": title,
                "xlabel": xlabel, "ylabel": ylabel, "series": series,
                "log": log, "xsize": xsize})

    def bars(self, name, title, ylabel, labels, series, log=False):
        """A plot. @series: label -> a number for each of @labels, or None."""
        if labels:
            self.plots.append({
                "kind": "bars", "name": name, "title": title,
                "ylabel": ylabel, "labels": list(labels), "series": series,
                "log": "y" if log else ""})

    def heat(self, name, title, unit, labels, series):
        """A plot of coloured cells: a row for each of @series, label -> a
        number from 0 to 1 for each of @labels, or None."""
        if labels:
            self.plots.append({
                "kind": "heat", "name": name, "title": title, "ylabel": unit,
                "labels": list(labels), "series": series, "log": ""})

    def see(self, sentence):
        """@sentence: its numbers are computed."""
        self.seen.append(sentence)

    def verdict(self, target, met, figures):
        """@met: None where it could not be measured."""
        self.verdicts.append((target, met, figures))

    def skip(self, what, reason):
        self.skipped.append((what, str(reason)))

    def attempt(self, what, function, *args, **kwargs):
        """Return: what @function does, or None if this host cannot do that."""
        try:
            return function(*args, **kwargs)
        except Skipped as reason:
            self.skip(what, reason)
            return None

    def forget_paths(self, *paths):
        """A report tells of no directory of this host."""
        def clean(text):
            for path in paths:
                text = text.replace(path + "/", "")
            return text
        self.failed = self.failed and clean(self.failed)
        self.skipped = [(clean(what), clean(why))
                        for what, why in self.skipped]

    def as_dict(self):
        return dict(vars(self))
