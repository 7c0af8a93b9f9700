# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""cases.py: what is run against rdma_rxe. This is the list of what is covered.

Every program runs with nopin as client and as server, at each path MTU of the
condition. The other side is the kernel's rxe0. All are unmodified.
"""
import collections

# options: what perftest gets besides -m and how many it shall transfer
# leaves: without asking whether its peer is done, too (linger.c)
# datagrams: it knows no -m; what is lost nobody sends again
Program = collections.namedtuple(
    "Program", "name gid options expected leaves datagrams",
    defaults=[False, False])
# captured: every packet of nopin is dissected; the veth device then cannot
# segment, so that a burst is cut before it is captured, as it is on a wire
# words: so often rxe READs a page of which nopin's program changes a word all
# the time, and gets it by SEND a quarter as often (../../host/word.c)
# notified: so often rxe raises a counter of nopin's program (../../host/notify.c)
# behind: each is asked by the other for what it will never take (behind.c)
Condition = collections.namedtuple(
    "Condition", "mtus captured loss evicted words notified behind",
    defaults=[0, 0, False])

# -u 16: an ACK timeout of 268 ms; an emulated machine often pauses for 67 ms.
# -F: the emulated processor's clock may be irregular, which perftest measures.
# -o 16: READs outstanding; rxe offers 128, nopin and cards take 16.
# Of atomics there are enough that a program lives until it is evicted.
PROGRAMS = [
    Program("ibv_rc_pingpong", "-g", "-n 60 -s 6000 -c", "bytes in",
            True),
    Program("ibv_ud_pingpong", "-g", "-n 60 -s 1001 -c", "bytes in",
            datagrams=True),
    Program("ib_write_bw", "-x", "-n 20 -s 20000 -u 16 -F", " 20000 "),
    Program("ib_read_bw", "-x", "-n 20 -s 20000 -u 16 -F -o 16", " 20000 "),
    Program("ib_send_bw", "-x", "-n 20 -s 20000 -u 16 -F", " 20000 "),
    Program("ib_atomic_bw", "-x", "-n 600 -u 16 -F -o 16", " 8 "),
]
ROLES = ["client", "server"]
CONDITIONS = {
    "plain": Condition([256, 512, 1024], True, False, False),
    # one packet of a hundred is lost, each way
    "loss": Condition([256, 512, 1024], True, True, False),
    "loss-1024": Condition([1024], True, True, False),
    # all memory of nopin's program is paged out, over and over
    "evict": Condition([256, 512, 1024], True, False, True),
    # bursts arrive whole; rxe's kernel cuts them
    "gso": Condition([1024], False, False, False, 3000, 500, True),
    "word": Condition([], False, False, False, 1000000),
}
# SEND ONLY of a datagram, where there are some (chosen()).
OPCODE_DATAGRAM = 0x64
# The RC opcodes that nopin must have sent in each captured condition: SEND
# first, middle, last; WRITE first, middle, last; READ request; READ response
# first, middle, last; ACK; atomic ACK; FETCH_ADD.
OPCODES = {0x00, 0x01, 0x02, 0x06, 0x07, 0x08, 0x0c, 0x0d, 0x0e, 0x0f, 0x11,
           0x12, 0x14}


def chosen(name):
    """The (program, role, MTU) of a condition."""
    condition = CONDITIONS[name]
    return [(program, role, mtu)
            for program in PROGRAMS for role in ROLES
            for mtu in (condition.mtus[-1:] if program.datagrams
                        else condition.mtus)
            if not (program.datagrams
                    and (condition.loss or condition.evicted))]
