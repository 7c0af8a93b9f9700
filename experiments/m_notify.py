# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a notification costs, by how it is detected (m_notify.c)."""
from lab import us

TITLE = "Notification: what it costs to be told of a WRITE"
ABOUT = """Two processes WRITE 8 bytes to each other in turn, and see the
other's in seven ways, in turns of one run; and the same with datagrams between
threads that sleep. Whoever blocks polls for 50 us before it sleeps; what it
costs to sleep at once (NOPIN_SPIN=0) is from a run of its own. NetVM paid
2.96 us more for a notification that is polled for, and 17.49 us for one that calls a handler."""
BUDGET_S = (40, 90)

WAYS = (("write", "polled memory, no notification"),
        ("spin", "counter, NOPIN_WAIT_SPIN"),
        ("word", "counter's word, polling the CQ"),
        ("block", "counter, NOPIN_WAIT_BLOCK"),
        ("futex", "counter, NOPIN_WAIT_FUTEX"),
        ("run", "handler, on a thread of the program"),
        ("handler", "handler, on a thread of nopin's"),
        ("udp", "UDP, asleep in recv(2)"))
# these again, with NOPIN_SPIN=0
ASLEEP = (("block", "counter, NOPIN_WAIT_BLOCK, NOPIN_SPIN=0"),
          ("handler", "handler on a thread of nopin's, NOPIN_SPIN=0"))


def run(lab, found):
    turns = 20 if lab.quick else 200
    took = lab.own("m_notify", turns).dist
    ways = [*WAYS]
    for way, what in ASLEEP:
        took[way + ", asleep"] = lab.own(
            "m_notify", turns, 8, way, env={"NOPIN_SPIN": "0"}).dist[way]
        ways.append((way + ", asleep", what))
    half = {way: took[way][50] for way, _ in ways}
    found.table("half round trip, 8 bytes",
                ["detected", "median", "p10", "p90", "more than a WRITE"],
                [[what, *(us(took[way][q]) for q in (50, 10, 90)),
                  f"{half[way] - half['write']:+.2f} us"]
                 for way, what in ways])
    found.bars("m_ways", "half round trip, 8 bytes", "us",
               [way for way, _ in ways],
               {"median": [took[way][50] for way, _ in ways],
                "p90": [took[way][90] for way, _ in ways]})
    asleep = half["block, asleep"]
    found.see(f"Polled, a notification costs "
              f"{half['spin'] - half['write']:+.2f} us; blocking "
              f"{half['block'] - half['spin']:+.1f} us more, and "
              f"{asleep - half['spin']:+.1f} us if it sleeps at once: "
              f"{asleep / half['udp']:.2f} x UDP.")
    found.verdict("by busy wait at most +0.5 us over the same WRITE",
                  half["spin"] - half["write"] <= 0.5,
                  f"{half['spin'] - half['write']:+.2f} us")
    found.verdict("blocking at most 1.15 x the sleeping UDP half round trip",
                  half["block"] <= 1.15 * half["udp"],
                  f"{half['block'] / half['udp']:.2f} x "
                  f"({us(half['block'])}, UDP {us(half['udp'])})")
    found.verdict("and as much where it sleeps at once (NOPIN_SPIN=0)",
                  asleep <= 1.15 * half["udp"],
                  f"{asleep / half['udp']:.2f} x")
    worst = max(half["handler"], half["run"])
    found.verdict("handler at most blocking + 5 us",
                  worst <= half["block"] + 5,
                  f"{worst - half['block']:+.2f} us")
    found.verdict("and as much where it sleeps at once (NOPIN_SPIN=0)",
                  half["handler, asleep"] <= asleep + 5,
                  f"{half['handler, asleep'] - asleep:+.2f} us")
