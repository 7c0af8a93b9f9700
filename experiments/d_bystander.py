# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The innocent bystander (d_tenant.c, d_fault.c)."""
import os
import re
import statistics

from lab import DEFAULT, Failed, Output, Skipped, quantile, us
from programs import Place, finish, kill, spawn

TITLE = "The innocent bystander"
ABOUT = """One connection's latency while another one of the same NIC meets
page faults all the time, in each strategy. The bystander is an unmodified
perftest pair; what faults is a tenant in the server's process, whose pages
take 10 ms to come and to which a third process WRITEs without pause. The
control: the tenant is there and idle, and a third process burns as much CPU as
the faults took."""
BUDGET_S = (170, 180)

KIND = "slow10"
PROGRAMS = ("ib_write_lat", "ib_read_lat")
PERCENT = (50, 99, 99.9)


class Runs:
    def __init__(self, lab):
        self.lab, self.count = lab, 0
        self.preload = os.path.join(lab.build, "experiments", "libtenant.so")

    def fault(self, *args, env=None):
        return spawn([self.lab.path("d_fault"), *args, str(os.getpid())],
                     env or {})

    def bystander(self, program, strategy, what, messages):
        """Return: latencies in us, what d_fault printed."""
        self.count += 1
        name = f"nopin-d-{os.getpid()}-{self.count}"
        env = {"NOPIN_FAULT": strategy} if strategy else {}
        fault = self.fault(name, what, env=env)
        try:
            head = fault.stdout.readline()
            if not head.startswith("listens"):
                raise Failed(f"d_fault: {head.strip()}")
            place = Place(server=[
                "env", f"LD_PRELOAD={self.preload}", f"D_TENANT={name}",
                f"D_KIND={KIND}"])
            out = self.lab.perftest(
                f"{program} -s 8 -n {messages} -U", place=place,
                env={"NOPIN_ADDR": "lo", **env},
                patience=10 if strategy == "drop" else 30)
            told = Output(finish(fault, "d_fault", self.lab.patience(10)))
        finally:
            kill(fault)
        values = [float(x) for x in
                  re.findall(r"^\d+, ([\d.]+)", out, re.MULTILINE)]
        if not values:
            raise Failed(f"{program} -U: no result")
        return values, told

    def control(self, program, strategy, share, messages):
        burners = []
        try:
            while share > 0.001:
                burners.append(self.fault("burn", f"{min(share, 1):.3f}"))
                share -= 1
            return self.bystander(program, strategy, "idle", messages)[0]
        finally:
            for process in burners:
                kill(process)


def share_of(told):
    return told.value("cpu") / max(told.value("wall"), 1e-3)


def one(runs, program, strategy, turns, messages, idle):
    """Return: quantile -> (faulting, control) in medians of turns, and of
    their ratios; faults a second; CPU share."""
    pairs = {q: [] for q in PERCENT}
    faults, shares = [], []
    for _ in range(turns):
        with_faults, told = runs.bystander(program, strategy, "fault", messages)
        share = max(share_of(told) - idle, 0)
        alone = runs.control(program, strategy, share, messages)
        faults.append(told.value("pages") / told.value("wall"))
        shares.append(share)
        for q in PERCENT:
            pairs[q].append((quantile(with_faults, q), quantile(alone, q)))
    middle = {q: [statistics.median(p[i] for p in pairs[q]) for i in (0, 1)] +
              [statistics.median(a / b for a, b in pairs[q])]
              for q in PERCENT}
    return middle, statistics.median(faults), statistics.median(shares)


def row(strategy, middle, faults, share):
    cells = [strategy, f"{faults:.0f}", f"{share:.0%}"]
    for q in PERCENT:
        cells += [us(middle[q][0]), us(middle[q][1])]
    return cells + [f"{middle[99.9][2]:.2f}"]


NOTHING = ({q: (0, 0, 0) for q in PERCENT}, 0, 0)


def one_program(lab, found, program):
    lab.own("d_fault", "have", KIND, os.getpid())
    runs, rows, got = Runs(lab), [], {}
    turns, messages = (1, 2000) if lab.quick else (3, 20000)
    told = runs.bystander(program, None, "idle", messages)[1]
    idle = share_of(told)
    strategies = list(lab.strategies())[::3 if lab.quick else 1]
    for strategy, reason in [(None, None), *strategies]:
        label = strategy or DEFAULT
        if reason:
            found.skip(f"{program}, {label}", reason)
            continue
        # a message takes as long as some faults where the NIC sleeps in them
        many = (1, messages // 100) if label == "block" else (turns, messages)
        try:
            got[label] = one(runs, program, strategy, *many, idle)
        except Skipped as why:
            found.skip(f"{program}, {label}, slow pages", why)
            continue
        except Failed as why:
            if label != "drop":
                raise
            # who waits for what was dropped may wait for long
            found.see(f"With drop, {program} did not come to an end: "
                      f"{str(why).rsplit(': ', 1)[-1]}.")
            rows.append([label] + ["-"] * (len(row("", *NOTHING)) - 1))
            continue
        rows.append(row(label, *got[label]))
    head = ["strategy", "faults/s", "CPU"]
    for q in PERCENT:
        head += [f"p{q:g}", "control"]
    found.table(f"unmodified {program}, half round trip of 8 bytes"
                if "write" in program else f"unmodified {program}, 8 bytes",
                [*head, "p99.9 ratio"], rows)
    found.bars(f"d_{program}", f"p99.9 of {program} while another connection "
               "faults", "us", list(got),
               {"faults": [g[0][99.9][0] for g in got.values()],
                "control": [g[0][99.9][1] for g in got.values()]}, log=True)
    return got


def checked_messages(lab, found):
    """Does what the unmodified program moves stay right, in each strategy?"""
    rows = []
    for strategy, reason in [(None, None), *lab.strategies()]:
        if reason or lab.quick and strategy:
            continue
        label = strategy or DEFAULT
        count = 20 if strategy == "drop" else 300
        n = found.attempt(f"data checked, {label}", lab.verified,
                          f"{PROGRAMS[0]} -s 65536 -n {count}",
                          {"NOPIN_FAULT": strategy} if strategy else None)
        if n:
            rows.append([label, str(n), "0"])
    found.table(f"unmodified {PROGRAMS[0]} whose own memory goes every 10 ms, "
                "with the verifier preloaded", ["strategy", "messages compared",
                                                "wrong"], rows)


def run(lab, found):
    checked_messages(lab, found)
    ratios, blocked = [], []
    for program in PROGRAMS[:1 if lab.quick else None]:
        got = found.attempt(f"{program}, slow pages", one_program, lab, found,
                            program)
        for label, (middle, _, _) in (got or {}).items():
            entry = (middle[99.9][2], f"{program}, {label}")
            (blocked if label == "block" else ratios).append(entry)
    target = "p99.9 <= 1.1 x the control for every strategy but block"
    if not ratios:
        found.verdict(target, None, "see what was skipped")
        return
    within = sum(ratio <= 1.1 for ratio, _ in ratios)
    found.verdict(target, within == len(ratios),
                  f"{within} of {len(ratios)}; the worst is "
                  f"{max(ratios)[0]:.2f} x ({max(ratios)[1]})")
    found.see(f"While a neighbour's faults take 10 ms each, the bystander's "
              f"p99.9 is {min(ratios)[0]:.2f} to {max(ratios)[0]:.2f} times "
              "that of the control.")
    for ratio, label in blocked:
        found.see(f"On a NIC that sleeps in faults it is {ratio:.2f} times "
                  f"({label}).")
