# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Semaphores and wait queues against the atomics that they are made of
(n_sync.c)."""
from lab import us

TITLE = "Wait queue and semaphore against bare atomics"
ABOUT = """Counting semaphores and wait queues between processes, by nopin.h. A
member alone takes and gives a unit, or asks whether it has to wait and wakes
nobody, by turns with the two atomics that each of these pairs is made of; all
of it in one run. Then sixteen processes want the same unit without pause, by
the semaphore and by repeating compare and swap until it succeeds. NetVM found
its wait queue 18.2 % and its counting semaphore 12.6 % above its atomics."""
BUDGET_S = (30, 120)

CROWD = 16
NETVM = {"semaphore": 1.126, "waitq": 1.182}
LIMIT = {"semaphore": 1.12, "waitq": 1.18}
WORDS = {"atomics": "two atomics", "semaphore": "nopin_sem_wait + post",
         "waitq": "nopin_waitq_prepare + wake"}


def alone(lab, found):
    out = found.attempt("a member alone", lab.own, "n_sync", "alone",
                        1000 if lab.quick else 50000, patience=60)
    if not out:
        return
    base = out.dist["atomics"]
    rows = []
    for name, words in WORDS.items():
        took = out.dist[name]
        rows.append([words, *(us(took[q]) for q in (50, 90, 99)),
                     f"{took[50] / base[50]:.3f}",
                     f"{NETVM[name]:.3f}" if name in NETVM else "1"])
    found.table("a pair of calls where nobody waits", [
        "", "p50", "p90", "p99", "x the atomics, p50", "NetVM"], rows)
    for name, limit in LIMIT.items():
        ratio = out.dist[name][50] / base[50]
        found.verdict(f"{WORDS[name]} <= {limit} x {WORDS['atomics']}",
                      ratio <= limit, f"{ratio:.3f}")


def crowd(lab, found):
    turns = 15 if lab.quick else 500
    out = found.attempt(f"{CROWD} at once", lab.own, "n_sync", "crowd", CROWD,
                        turns, patience=100)
    if not out:
        return
    rows, worst = [], {}
    for name in ("semaphore", "atomics"):
        took = out.dist[name]
        worst[name] = took[100] / took["mean"]
        rows.append([name, str(took["n"]), us(took["mean"]), us(took[50]),
                     us(took[99]), us(took[100]), f"{worst[name]:.1f}"])
    found.table(f"{CROWD} processes and one unit: how long each waits for it",
                ["", "waits", "mean", "p50", "p99", "longest",
                 "longest / mean"], rows)
    found.bars("n_crowd", f"{CROWD} processes and one unit", "us",
               ["mean", "p99", "longest"],
               {name: [out.dist[name][q] for q in ("mean", 99, 100)]
                for name in worst}, log=True)
    found.verdict(f"of {CROWD} the longest wait <= 4 x the mean",
                  worst["semaphore"] <= 4, f"{worst['semaphore']:.1f} x")
    found.see("Repeated compare and swap lets the longest wait "
              f"{worst['atomics']:.0f} x the mean.")


def run(lab, found):
    alone(lab, found)
    crowd(lab, found)
