#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""mutate.py [--seeds N] [--sample N] [--jobs N] [WORD]: breaks the tree on purpose, one
mistake of mutations.py at a time (those with WORD in their names, or N of them drawn at
random), in a copy of the tree for each job, and runs the unit tests and the simulator on
each: the tests of the file that is broken first, then those of its directory, the
simulator and all others, the quick ones first; those that take long only for mistakes
that no quick one caught, at the end. Ends with a line "N passed, N failed": a mistake
that no test catches has failed.

mutate.py --fits only checks that each entry still fits the tree."""
import argparse
import concurrent.futures
import itertools
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time

from mutations import MUTATIONS

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
SCENARIOS = ["pair", "lossy", "fault", "preempt", "replay", "rnr", "evict",
             "teardown", "mixed", "card", "busy", "full", "slow", "refuse", "reg",
             "strategy", "fixed", "queue", "adaptive", "prefetch", "suspend",
             "ud", "flood", "resume", "notify", "upcall", "sync",
             "order", "budget", "open", "ending", "rescue", "reads", "srq", "far"]
# worlds that few seeds make
SEEDS = [("upcall", 139), ("notify", 128), ("notify", 16386),
         ("order", 10208), ("order", 12188), ("order", 14085)]
LIBS = ["libnopin_core.a", "libnopin_os.a"]
NOBODY = "nobody: it does not compile"
SIM = "tests/sim/sim_run"
SIMULATED = ["base", "wire", "ring", "mem", "xport", "nic"]
FEW_SEEDS = 5
QUICK_S = 3
UNIT_S = 60
SIM_S = 300
SKIPPED = 77


def run(command, patience_s=None):
    """Whether @command succeeds, in good time."""
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False,
                              timeout=patience_s).returncode in (0, SKIPPED)
    except subprocess.TimeoutExpired:
        return False


def not_sources(folder, names):
    return [n for n in names if n == ".git" or (
        n.startswith("build") and os.path.isdir(os.path.join(folder, n)))]


def units(tree):
    """The names of all unit tests that a tree has."""
    targets = subprocess.run(["ninja", "-C", f"{tree}/build", "-t", "targets", "all"],
                             capture_output=True, text=True, check=True).stdout
    return [line.split(":")[0].removeprefix("tests/unit/") for line in targets.splitlines()
            if line.startswith("tests/unit/") and line.endswith("_test: c_LINKER")]


def build(tree, targets, jobs):
    return run(["ninja", "-C", f"{tree}/build", "-j", str(jobs), *targets])


class Test:
    """A program with its arguments, that a mistake may make fail."""

    def __init__(self, name, target, args=(), patience_s=UNIT_S, must=False):
        self.name, self.target, self.args = name, target, args
        self.patience_s = patience_s
        self.must = must  # pass without a mistake, or something is wrong with the tree
        self.took_s = None

    def passes(self, tree):
        return run([f"{tree}/build/{self.target}", *self.args], self.patience_s)

    def try_out(self, tree):
        """Run it without a mistake, and note how long it takes."""
        begin = time.monotonic()
        passed = self.passes(tree)
        self.took_s = time.monotonic() - begin
        return passed

    def distance(self, path):
        """0: a unit test of the file @path; more: what is less likely to notice it."""
        layer, file = path.removeprefix("src/").split("/")[:2]
        name = self.name.split("/")[-1]
        if name.startswith(f"{layer}_{os.path.splitext(file)[0]}_"):
            return 0
        if name.startswith(f"{layer}_"):
            return 1
        return 2 if (self.target == SIM) == (layer in SIMULATED) else 3


def sim_test(scenario, option, number, must=True):
    return Test(f"sim/{scenario}, {option[2:]} {number}", SIM,
                ["--scenario", scenario, option, str(number)], SIM_S, must)


def all_tests(tree, seeds):
    """All tests that a tree has. What @seeds must meet, fewer need not."""
    tests = [Test(n, f"tests/unit/{n}") for n in units(tree)]
    tests += [sim_test(s, "--seed", n) for s, n in SEEDS]
    for scenario in SCENARIOS:
        tests += [sim_test(scenario, "--seeds", FEW_SEEDS, must=False),
                  sim_test(scenario, "--seeds", seeds)]
    return tests


def first_failed(tree, tests):
    """The name of the first test that fails, or None."""
    return next((t.name for t in tests if not t.passes(tree)), None)


def misfit(entry):
    """What is wrong with an entry of MUTATIONS, or None."""
    if len(entry) != 4:
        return f"{len(entry)} fields instead of 4"
    _, path, old, new = entry
    try:
        with open(os.path.join(TOP, path), encoding="utf-8") as file:
            times = file.read().count(old)
    except OSError as err:
        return str(err)
    if times != 1:
        return f"{path}: {times} times instead of once: {old!r}"
    return "changes nothing" if old == new else None


def check_entries(entries):
    """Exit if entries do not fit the tree, or share a name."""
    wrong = [f"{e[0]}: {misfit(e)}" for e in entries if misfit(e)]
    names = [e[0] for e in entries]
    wrong += [f"{n}: the name of several" for n in sorted(set(names))
              if names.count(n) > 1]
    if wrong:
        sys.exit("\n".join(wrong))


def mutated(tree, path, old, new):
    """Put the mistake into the copy. Return: the file, and what was in it."""
    name = os.path.join(tree, path)
    with open(name, encoding="utf-8") as file:
        text = file.read()
    with open(name, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))
    return name, text


class Trees:
    """Copies of the tree, a job each."""

    def __init__(self, directory, jobs, seeds):
        self.free = queue.Queue()
        self.builders = max(1, (os.cpu_count() or 1) // jobs)
        for i in range(jobs):
            tree = os.path.join(directory, f"tree{i}")
            shutil.copytree(TOP, tree, ignore=not_sources)
            run(["meson", "setup", f"{tree}/build", tree])
            tests = all_tests(tree, seeds)
            if not build(tree, {t.target for t in tests}, os.cpu_count()):
                sys.exit("the tree does not build")
            self.free.put(tree)
        self.tests = []
        for test in tests:
            if test.try_out(tree):
                self.tests.append(test)
            elif test.must:
                sys.exit(f"without a mistake {test.name} fails")
            else:
                print(f"not asked, as it fails without a mistake: {test.name}", flush=True)

    def first_failed(self, tree, path, quick):
        """The first of the tests that fails where the file @path is broken, or None."""
        tests = [t for t in self.tests if (t.took_s < QUICK_S) == quick]
        tests.sort(key=lambda t: (t.distance(path), t.took_s))
        own = [t for t in tests if t.distance(path) == 0]
        if not build(tree, LIBS + [t.target for t in own], self.builders):
            return NOBODY
        failed = first_failed(tree, own)
        if failed:
            return failed
        if not build(tree, {t.target for t in tests}, self.builders):
            return NOBODY
        return first_failed(tree, tests[len(own):])

    def judge(self, entry, quick):
        """Which of the tests notices the mistake, or None."""
        _, path, old, new = entry
        tree = self.free.get()
        file, text = mutated(tree, path, old, new)
        test = self.first_failed(tree, path, quick)
        with open(file, "w", encoding="utf-8") as original:
            original.write(text)
        self.free.put(tree)
        return test


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--seeds", type=int, default=60)
    args.add_argument("--sample", type=int)
    args.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args.add_argument("--fits", action="store_true")
    args.add_argument("word", nargs="?", default="")
    args = args.parse_args()
    check_entries(MUTATIONS)
    if args.fits:
        print(f"{len(MUTATIONS)} entries fit")
        return 0
    missed = 0
    chosen = [e for e in MUTATIONS if args.word in e[0]]
    if args.sample is not None:
        chosen = random.sample(chosen, min(args.sample, len(chosen)))

    with tempfile.TemporaryDirectory() as directory, \
            concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        trees = Trees(directory, args.jobs, args.seeds)
        left = chosen
        for quick in (True, False):
            asked, left = left, []
            for entry, test in zip(asked, pool.map(trees.judge, asked,
                                                   itertools.repeat(quick))):
                if test is None:
                    left.append(entry)
                else:
                    print(f"{entry[0]}: {test}", flush=True)
                missed += test == NOBODY
        for entry in left:
            print(f"{entry[0]}: not caught")
    missed += len(left)
    print(f"{len(chosen) - missed} passed, {missed} failed")
    return missed != 0


if __name__ == "__main__":
    sys.exit(main())
