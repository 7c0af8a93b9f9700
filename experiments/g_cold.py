# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Datagrams into a cold receive ring (g_cold.c)."""
from lab import Swap, us

TITLE = "The cold ring: datagrams into receives that were never touched"
ABOUT = """NPF's Ethernet half. A process posts a ring of receives, a page each,
and another sends unreliable datagrams into it at a steady rate. No page of the
ring is there: never touched, or swapped out. A naive card drops what meets a
missing page (drop); nopin keeps it in its backup ring, a slot of the redirect
pool, and delivers it in order when the page is there (backup), or takes a cheap
fault in the move (adaptive, the default); or the program has all pages brought in
beforehand (prefault, by ibv_advise_mr(), with what is missing dropped), which helps
until they are swapped out. Nobody sends a datagram again: what is dropped is lost."""
BUDGET_S = (30, 120)

# label -> (NOPIN_FAULT, what else)
WAYS = {
    "drop": ("drop",),
    "backup": ("backup",),
    "adaptive": ("adaptive",),
    "prefault": ("drop", "prefault"),
}
KINDS = {"minor": "never touched", "swap": "swapped out"}
RING = 1024
GAP_NS = 25000
# Where a datagram that did not arrive was lost.
LOST = {"fault_drop": "page missing", "drop_no_backup": "backup full",
        "drop_no_recv": "no receive", "kernel_drops": "socket"}


def one(lab, kind, way):
    total = 2000 if lab.quick else 8000
    fault, *more = WAYS[way]
    return lab.own("g_cold", kind, RING, total, GAP_NS, *more,
                   env={"NOPIN_FAULT": fault}, patience=60)


def row(kind, way, out):
    delivered, sent = (int(out.value(name)) for name in ("delivered", "sent"))
    first = us(out.value("first")) if "first" in out.rows else "never"
    thousandth = us(out.value("thousandth")) if "thousandth" in out.rows \
        else "never"
    return [KINDS[kind], way, delivered, sent - delivered,
            *(out.counter["receiver", name] for name in LOST),
            first, thousandth,
            us(out.dist["latency"][50]) if "latency" in out.dist else "-",
            us(out.dist["latency"][99]) if "latency" in out.dist else "-"]


def curve(out):
    """(ms, how many had arrived)"""
    return [(float(x) / 1e3, int(n)) for x, n in out.rows.get("curve", [])]


def measure(lab, found, swap):
    outs = {}
    for kind, name in KINDS.items():
        for way in WAYS:
            if kind == "swap" and swap.reason:
                found.skip(f"{name}, {way}", swap.reason)
                continue
            out = found.attempt(f"{name}, {way}", one, lab, kind, way)
            if out:
                outs[kind, way] = out
    return outs


def lost(outs, kind, way):
    out = outs.get((kind, way))
    return int(out.value("sent") - out.value("delivered")) if out else None


def run(lab, found):
    with Swap() as swap:
        outs = measure(lab, found, swap)
    found.table(
        f"a ring of {RING} receives, one datagram every {us(GAP_NS / 1e3)}",
        ["ring", "", "delivered", "lost", *LOST.values(), "first after",
         "1000th after", "latency, p50", "p99"],
        [row(kind, way, out) for (kind, way), out in outs.items()])
    for kind, name in KINDS.items():
        found.lines(f"g_{kind}", f"datagrams into a ring that is {name}",
                    "ms since the first was sent", "delivered",
                    {way: curve(out) for (k, way), out in outs.items()
                     if k == kind})
    for kind, name in KINDS.items():
        if (kind, "drop") in outs and (kind, "backup") in outs:
            found.see(
                f"A ring that is {name}: {lost(outs, kind, 'drop')} of "
                f"{int(outs[kind, 'drop'].value('sent'))} datagrams are lost "
                f"where they are dropped, {lost(outs, kind, 'backup')} with "
                f"the backup ring.")
    told = [out.counter["receiver", name] for (_, way), out in outs.items()
            if way in ("backup", "adaptive")
            for name in ("fault_drop", "drop_no_backup")]
    found.verdict("with the backup ring no datagram is lost for a page",
                  sum(told) == 0 if told else None,
                  f"{sum(told)} dropped in {len(told) // 2} runs"
                  if told else "see what was skipped")
