# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Overcommit (f_overcommit.c)."""
import re
import statistics

from lab import MIB, Failed, MemoryLimit, Skipped, Swap, is_root, size, us
from programs import Place

TITLE = "Overcommit: more registered memory than there is"
ABOUT = """Servers of keys and values under one memory limit (a cgroup), with swap
on compressed memory. Each registers 0.4 of the limit; its client GETs and SETs,
one-sided, items of 16 KiB of a quarter of that, 500 times a second, as users ask
at a rate of theirs, and checks every byte; the quarter moves on all the time.
Pinned, a server whose memory is not to be had is killed or refused, and its users
get nothing. NPF's memcached under overcommit reached up to 1.9 times the
throughput of pinned memory."""
BUDGET_S = (80, 60)

LIMIT = 256 * MIB
EACH = LIMIT * 2 // 5
HOT = EACH // 4
RATE = 500
MODES = {"pinned": "pin", "unpinned": "ondemand"}
TARGET = 1.9


def one(lab, mode, servers, ms):
    with MemoryLimit(LIMIT) as group:
        return lab.own("f_overcommit", group.procs, servers, EACH, HOT, RATE,
                       1000 if lab.quick else 2000, ms,
                       env={"NOPIN_REG": mode}, patience=40)


def served(out, ms):
    """Operations a second, of all clients."""
    return sum(int(row[0]) for row in out.rows.get("client", ())) / ms * 1e3


def over_time(out):
    """s -> operations a second, of all clients."""
    slots = {}
    for _, at, n in out.rows.get("slot", ()):
        slots[int(at)] = slots.get(int(at), 0) + int(n)
    width = sorted(slots)[1] if len(slots) > 1 else 250
    return [(at / 1e3, n * 1000 / width) for at, n in sorted(slots.items())]


def row(servers, label, out, ms):
    clients = out.rows.get("client", ())
    return [str(servers), f"{servers * EACH / LIMIT:.1f} x", label,
            f"{out.value('started'):.0f} of {servers}",
            size(int(out.rows["started"][0][1]) * 1024),
            f"{served(out, ms):.0f}/s",
            f"{served(out, ms) / (servers * RATE):.0%}",
            *(us(statistics.median(float(c[i]) for c in clients))
              if clients else "-" for i in (2, 3)),
            str(sum(int(c[1]) for c in clients))]


def measure(lab, found):
    """Return: (servers, label) -> Output, how long each was."""
    got, rows, ms = {}, [], 2000 if lab.quick else 8000
    for servers in (5,) if lab.quick else (2, 3, 5):
        for label, mode in MODES.items():
            out = found.attempt(f"{servers} servers, {label}", one, lab, mode,
                                servers, ms)
            if out:
                got[servers, label] = out
                rows.append(row(servers, label, out, ms))
    found.table(f"servers of {size(EACH)} each under a limit of {size(LIMIT)}",
                ["servers", "registered", "memory", "started", "locked",
                 "served", "of what was asked", "p50", "p99", "wrong items"],
                rows)
    return got, ms


# --- an unmodified program ---------------------------------------------------

READ_BYTES = 64 * MIB  # of which perftest registers two
READ_LIMIT = 96 * MIB


def read_bw(lab, mode):
    """The server of an unmodified ib_read_bw under a limit of 3/4 of what it
    registers. Return: MB/s, or why it did not start."""
    with MemoryLimit(READ_LIMIT) as group:
        enter = ["sh", "-c", f"echo 0 >{group.procs}; exec \"$@\"", "sh"]
        try:
            out = lab.perftest(
                f"ib_read_bw -s {READ_BYTES} -n {5 if lab.quick else 10} -t 2",
                env={"NOPIN_REG": mode}, place=Place(server=enter))
        except Failed as why:
            if mode == "ondemand":
                raise
            return f"does not start ({str(why).rsplit(': ', 1)[-1]})"
    found = re.search(r"^\s*\d+\s+\d+\s+[\d.]+\s+([\d.]+)", out, re.MULTILINE)
    if not found:
        raise Failed("ib_read_bw: no result")
    return f"{float(found[1]) * MIB / 1e6:.0f} MB/s"


def unmodified(lab, found):
    rows = []
    for label, mode in MODES.items():
        said = found.attempt(f"ib_read_bw, {label}", read_bw, lab, mode)
        if said:
            rows.append([label, said])
    found.table(f"unmodified ib_read_bw of {size(READ_BYTES)}, its server "
                f"under a limit of {size(READ_LIMIT)}", ["memory", ""], rows)


# --- all of it ---------------------------------------------------------------


def judge(found, got, ms):
    target = (f">= {TARGET} x pinned's aggregate throughput at twice the limit")
    wrong = sum(int(c[1]) for out in got.values()
                for c in out.rows.get("client", ()))
    found.verdict("every item is what it should be", wrong == 0,
                  f"{wrong} wrong")
    pinned, ours = got.get((5, "pinned")), got.get((5, "unpinned"))
    if not pinned or not ours:
        found.verdict(target, None, "see what was skipped")
        return
    found.verdict("unpinned, all servers start", ours.value("started") == 5,
                  f"{ours.value('started'):.0f} of 5, pinned "
                  f"{pinned.value('started'):.0f}")
    ratio = served(ours, ms) / max(served(pinned, ms), 1)
    # pinned memory cannot be had in halves: what would fit, if it could
    fits = served(ours, ms) / (LIMIT / EACH * RATE)
    found.verdict(target, ratio >= TARGET, f"{ratio:.2f} x")
    found.see(f"With twice the limit registered, {ours.value('started'):.0f} "
              f"unpinned servers serve {ratio:.2f} times what the "
              f"{pinned.value('started'):.0f} do that start with pinned "
              f"memory, and {fits:.2f} times what the limit's "
              f"{LIMIT / EACH:.1f} servers of pinned memory would.")


def run(lab, found):
    if not is_root():
        raise Skipped("a memory limit and swap need root")
    with Swap() as swap:
        swap.need()
        got, ms = measure(lab, found)
        unmodified(lab, found)
    if not got:
        raise Skipped("no server could be started")
    found.lines("f_overcommit", "five servers, twice the limit registered: "
                "operations a second", "s", "a second",
                {label: over_time(out) for (n, label), out in got.items()
                 if n == 5})
    judge(found, got, ms)
