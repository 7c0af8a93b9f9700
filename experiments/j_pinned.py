# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Pinning does not prevent faults (k_memops.c)."""
import importlib
import resource

from lab import MIB, is_root, us

TITLE = "Pinning does not prevent faults"
ABOUT = """Psistakis found that pinned memory faults nevertheless: the kernel
may still change how it is mapped. The traffic of experiment k on memory that
is locked (NOPIN_REG=pin) and on memory that is not, every page of which was
there before, while it is collapsed to huge pages, merged, migrated, or its
owner forks. Counted are the page faults that the kernel charged to the NIC's
threads at the target, as many as there were for a thousand WRITEs."""
BUDGET_S = (40, 60)

OPERATIONS = ("nothing", "huge", "migration", "ksm", "fork-target")
NEED = 8 * MIB


def faults(out):
    """For a thousand WRITEs."""
    return out.value("nic_faults") / max(out.dist["write"]["n"], 1) * 1000


def run(lab, found):
    k = importlib.import_module("k_memops")
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    modes = [("pin", "pinned"), ("ondemand", "unpinned")]
    if not is_root() and limit != resource.RLIM_INFINITY and limit < NEED:
        found.skip("pinned", "locking 8 MiB needs root or ulimit -l")
        del modes[0]
    rows, per_mode = [], {words: {} for _, words in modes}
    ms = 200 if lab.quick else 2000
    with k.Merging() as merging:
        for name in OPERATIONS:
            words = k.OPERATIONS[name][0]
            if name == "ksm" and merging.reason:
                found.skip(words, merging.reason)
                continue
            row = [words]
            for mode, label in modes:
                out = found.attempt(f"{words}, {label}", lab.own, "k_memops",
                                    name, ms, env={"NOPIN_REG": mode})
                if not out:
                    row += ["-", "-"]
                    continue
                per_mode[label][words] = faults(out)
                row += [f"{faults(out):.1f}", us(out.dist["write"][99])]
            rows.append(row)
    head = ["operation"]
    for _, label in modes:
        head += [f"faults/1000 WRITEs, {label}", "p99"]
    found.table("faults that the NIC met", head, rows)
    names = [row[0] for row in rows]
    found.bars("j_faults", "faults of the NIC's threads for 1000 WRITEs",
               "faults", names, {label: [values.get(n) for n in names]
                                 for label, values in per_mode.items()})
    quiet = per_mode.get("pinned", {})
    idle = quiet.pop("nothing", 0)
    more = {n: f for n, f in quiet.items() if f > idle + 1}
    if quiet:
        found.see(f"Locked memory met more faults than when left alone "
                  f"({idle:.1f}) in {len(more)} of {len(quiet)} operations"
                  + (": " + ", ".join(f"{n} ({f:.1f})"
                                      for n, f in more.items())
                     if more else "") + ".")
    else:
        found.see("Nothing could be locked.")
