#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""holder_test.py BUILD VICTIM: what becomes of those that the holder of UDP port 4791
passes on to when it is stopped, and when it is killed. The peer is a standard one: a
socket of this test, which sends to 4791 and says everything again until it is answered.
"""
import os
import signal
import sys
import time

import attack
from attack import ROCE_PORT, Victim

BUILD, VICTIM = sys.argv[1:3]
NOPIN = os.path.join(BUILD, "tools/nopin/nopin")
LO, AGAIN_S = "127.0.0.1", 0.02
NO_QPN = 0x400 * 9 + 5  # nobody is at the port that it names


class Peer:
    """Of a victim; it is no nopin."""

    def __init__(self, victim):
        self.victim, self.psn = victim, 0x777
        self.sock = attack.udp_socket(LO)
        victim.connect(NO_QPN, self.psn, LO, LO)
        victim.do("receive", 32)

    def send_once(self, word):
        sport = self.sock.getsockname()[1]
        self.sock.sendto(attack.send_only(LO, LO, sport, ROCE_PORT,
                                          self.victim.qpn, self.psn, word),
                         (LO, ROCE_PORT))

    def send(self, word):
        """Until the victim has it. Return: how often it was said."""
        said, end = 0, time.monotonic() + attack.PATIENCE_S
        while time.monotonic() < end:
            self.send_once(word)
            said += 1
            if self.victim.wait(1, int(AGAIN_S * 1000)):
                self.psn += 1
                return said
        raise AssertionError("it never came")


def stop(victim):
    os.kill(victim.pid, signal.SIGSTOP)
    os.waitpid(victim.pid, os.WUNTRACED)


def stopped(holder, victim):
    """What comes meanwhile waits in its socket."""
    peer = Peer(victim)
    peer.send(b"word")
    stop(holder)
    peer.send_once(b"stop")
    assert victim.wait(1, 200) == [], "who passed that on?"
    os.kill(holder.pid, signal.SIGCONT)
    assert victim.wait(1) == ["receive:0:4"]
    peer.psn += 1
    peer.send(b"goes")
    return peer


def killed(holder, peers):
    """One of the others takes over, and the rest go by that one."""
    holder.run.kill()
    holder.run.wait()
    for peer in peers:
        peer.send(b"anew")


def killed_while_stopped(holder, peer):
    stop(holder)
    holder.run.kill()
    holder.run.wait()
    peer.send(b"more")


def main():
    attack.own_network()
    with Victim(NOPIN, VICTIM) as first, Victim(NOPIN, VICTIM) as second, \
            Victim(NOPIN, VICTIM) as third:
        one, two = stopped(first, second), Peer(third)
        two.send(b"word")
        killed(first, [one, two])
        # who holds it now?
        held = [victim for victim in (second, third) if holds(victim)]
        assert len(held) == 1, "one holds the port"
        rest, peer = (third, two) if held[0] is second else (second, one)
        killed_while_stopped(held[0], peer)
        assert holds(rest)


def holds(victim):
    """Has it the socket of the port?"""
    inode = None
    with open("/proc/net/udp6", encoding="ascii") as table:
        for line in table:
            words = line.split()
            if words[1].endswith(f":{ROCE_PORT:04X}"):
                inode = words[9]
    links = f"/proc/{victim.pid}/fd"
    return any(os.readlink(f"{links}/{fd}") == f"socket:[{inode}]"
               for fd in os.listdir(links))


main()
