# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a notification costs, by how it is detected (m_notify.c)."""
from lab import us

TITLE = "Notification: what it costs to be told of a WRITE"
ABOUT = """Two processes WRITE 8 bytes to each other in turn, and see the
other's in seven ways, in turns of one run; and the same with datagrams between
threads that sleep. NetVM paid 2.96 us more for a notification that is polled
for, and 17.49 us for one that calls a handler."""
BUDGET_S = (40, 60)

WAYS = (("write", "polled memory, no notification"),
        ("spin", "counter, NOPIN_WAIT_SPIN"),
        ("word", "counter's word, polling the CQ"),
        ("block", "counter, NOPIN_WAIT_BLOCK"),
        ("futex", "counter, NOPIN_WAIT_FUTEX"),
        ("run", "handler, on a thread of the program"),
        ("handler", "handler, on a thread of nopin's"),
        ("udp", "UDP, asleep in recv(2)"))


def run(lab, found):
    took = lab.own("m_notify", 20 if lab.quick else 200).dist
    half = {way: took[way][50] for way, _ in WAYS}
    found.table("half round trip, 8 bytes",
                ["detected", "median", "p10", "p90", "more than a WRITE"],
                [[what, *(us(took[way][q]) for q in (50, 10, 90)),
                  f"{half[way] - half['write']:+.2f} us"]
                 for way, what in WAYS])
    found.bars("m_ways", "half round trip, 8 bytes", "us",
               [way for way, _ in WAYS],
               {"median": [took[way][50] for way, _ in WAYS],
                "p90": [took[way][90] for way, _ in WAYS]})
    found.see(f"Polled, a notification costs "
              f"{half['spin'] - half['write']:+.2f} us; asleep, "
              f"{half['block'] - half['spin']:+.1f} us more than polled; in a "
              f"handler {half['handler'] - half['block']:+.1f} us more than "
              "asleep.")
    found.verdict("by busy wait at most +0.5 us over the same WRITE",
                  half["spin"] - half["write"] <= 0.5,
                  f"{half['spin'] - half['write']:+.2f} us")
    found.verdict("blocking at most 1.15 x the sleeping UDP half round trip",
                  half["block"] <= 1.15 * half["udp"],
                  f"{half['block'] / half['udp']:.2f} x "
                  f"({us(half['block'])}, UDP {us(half['udp'])})")
    worst = max(half["handler"], half["run"])
    found.verdict("handler at most blocking + 5 us",
                  worst <= half["block"] + 5,
                  f"{worst - half['block']:+.2f} us")
