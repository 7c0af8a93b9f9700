# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Every memory operation under live traffic (k_memops.c)."""
import os

from lab import QUANTILES, Swap, is_root, us

TITLE = "Every memory operation under live traffic"
ABOUT = """What an owner of registered memory may do to it while a peer WRITEs
and READs it without pause (NPF: "all the canonical memory optimizations").
Data is right if each word that the peer reads is what it wrote last, or 0
where the operation throws content away, and if all is exact after the
operation. An error is right where the owner took the access away itself."""
BUDGET_S = (40, 90)

GONE = "remote access error"
NO_ERROR = "success"
# operation -> what it is, may content go, the right status at the peer
OPERATIONS = {
    "nothing": ("nothing", False, NO_ERROR),
    "swap-out": ("swapped out (MADV_PAGEOUT)", False, NO_ERROR),
    "free": ("MADV_FREE", True, NO_ERROR),
    "dontneed": ("MADV_DONTNEED", True, NO_ERROR),
    "fork-target": ("fork and copy-on-write, target", False, NO_ERROR),
    "fork-source": ("fork and copy-on-write, source", False, NO_ERROR),
    "ksm": ("merged (KSM)", False, NO_ERROR),
    "huge": ("collapsed to huge pages and split", False, NO_ERROR),
    "migration": ("migrated (compaction)", False, NO_ERROR),
    "limit": ("memory limit lowered", False, NO_ERROR),
    "hole": ("hole punched into the file", True, NO_ERROR),
    "mprotect": ("mprotect(PROT_READ)", False, GONE),
    "mremap": ("moved away by mremap()", False, GONE),
    "truncate": ("file truncated", True, GONE),
}
NEED_SWAP = ("swap-out", "limit")
STATUS = {0: NO_ERROR, 10: GONE, 11: "remote operational error",
          12: "retries exceeded", 13: "RNR retries exceeded"}
KSM = "/sys/kernel/mm/ksm/"


class Merging:
    """KSM runs, fast; afterwards it is as it was."""

    WANTED = {"pages_to_scan": "5000", "sleep_millisecs": "5", "run": "1"}

    def __init__(self):
        self.before, self.reason = {}, None

    def __enter__(self):
        if not os.path.exists(KSM + "run"):
            self.reason = "no KSM in this kernel"
        elif not is_root():
            self.reason = "merging pages (KSM) needs root"
        else:
            for name, value in self.WANTED.items():
                with open(KSM + name, encoding="ascii") as f:
                    self.before[name] = f.read().strip()
                self.put(name, value)
        return self

    @staticmethod
    def put(name, value):
        with open(KSM + name, "w", encoding="ascii") as f:
            f.write(value)

    def __exit__(self, *_):
        for name, value in self.before.items():
            self.put(name, value)


def judge(name, out):
    """Return: what is said of the data, of the error; is all right?"""
    _, may_go, status = OPERATIONS[name]
    _, zero, wrong = (int(x) for x in out.rows["during"][0])
    said = STATUS.get(int(out.value("status")), "another error")
    changed = int(out.rows["snapshots"][0][0])
    after = [int(x) for x in out.rows.get("after", [["0"] * 3])[0]]
    right = not wrong and (may_go or not zero) and not after[1] and \
        not after[2] and not changed
    words = "right" if right and not zero else \
        f"right; {zero} times thrown away" if right else \
        f"WRONG: {wrong + after[2]} pages, {zero} lost, {changed} seen by " \
        "a child"
    error = "nobody" if said == NO_ERROR else f"the peer: {said}"
    return words, error, right and said == status


def run(lab, found):
    rows, good, bad, delays, base = [], [], [], {}, None
    ms = 200 if lab.quick else 2000
    with Swap() as swap, Merging() as merging:
        for name, (words, _, status) in OPERATIONS.items():
            reason = swap.reason if name in NEED_SWAP else \
                merging.reason if name == "ksm" else None
            if reason:
                found.skip(words, reason)
                continue
            out = found.attempt(words, lab.own, "k_memops", name,
                                ms if status == NO_ERROR else 200)
            if not out:
                continue
            data, error, right = judge(name, out)
            (good if right else bad).append(words)
            none = {"n": 0, **dict.fromkeys(QUANTILES, 0)}
            took = out.dist.get("write", none)
            base = base or took
            delays[words] = took
            rows.append([words, data, error, str(took["n"]), us(took[50]),
                         us(took[99]), us(took[100]),
                         "as it should" if right else "NOT as it should"])
    found.table("what a peer sees of an operation on the memory that it works "
                "on", ["operation", "data", "error to", "WRITEs", "p50", "p99",
                       "longest", ""], rows)
    found.bars("k_memops", "WRITEs of 4 KiB while their memory is worked on",
               "us", list(delays),
               {"median": [d[50] for d in delays.values()],
                "p99": [d[99] for d in delays.values()],
                "longest": [d[100] for d in delays.values()]}, log=True)
    found.verdict("data right, and an error only where the owner took the "
                  "access away", not bad, f"{len(good)} of "
                  f"{len(good) + len(bad)} operations"
                  + (f"; not: {', '.join(bad)}" if bad else ""))
    worst = max((d[100] for d in delays.values()), default=0)
    found.see(f"Of {len(rows)} operations under traffic, {len(good)} went as "
              f"they should; the longest WRITE took {us(worst)}, without any "
              f"operation {us(base[100])}.")
