# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""wire.py: boxes on one wire: network namespaces whose interfaces are ports of a bridge.
What is sent by spoof() leaves one of them with any source address and port.

Belongs to who went on in a network of his own (attack.own_network(mounts=True)): names
and processes are gone with it.
"""
import collections
import ctypes
import os
import socket
import struct
import subprocess

from attack import OPEN

# inside: what is put in front of a command that is to run in the box
Box = collections.namedtuple("Box", "name ip inside")

CLONE_NEWNET = 0x40000000
UNREACHABLE, PORT, UDP = 3, 3, 17


def run(*words):
    subprocess.run(words, check=True)


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ip_header(src, dst, protocol, length):
    """The kernel fills in the check sum."""
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + length, 1, 0x4000, 64, protocol, 0,
                       socket.inet_aton(src), socket.inet_aton(dst))


def udp(src, sport, dst, dport, payload):
    length = 8 + len(payload)
    pseudo = socket.inet_aton(src) + socket.inet_aton(dst) + struct.pack(
        ">HH", UDP, length)
    ports = struct.pack(">HHH", sport, dport, length)
    summed = checksum(pseudo + ports + b"\0\0" + payload) or 0xffff
    return ip_header(src, dst, UDP, length) + ports + struct.pack(
        ">H", summed) + payload


def port_unreachable(src, dst, sport, dport):
    """What host @src says to @dst of a packet from its @sport to @dport of @src."""
    about = ip_header(dst, src, UDP, 8) + struct.pack(">HHHH", sport, dport, 8, 0)
    head = struct.pack(">BBHI", UNREACHABLE, PORT, 0, 0)
    summed = struct.pack(">H", checksum(head + about))
    message = head[:2] + summed + head[4:] + about
    return ip_header(src, dst, socket.IPPROTO_ICMP, len(message)) + message


def enter(path):
    """This thread goes on in the network namespace that @path names."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "rb") as where:
        if libc.setns(where.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)


class Wire:
    """@addresses: of each box, by its name; one of them is the @attacker."""

    def __init__(self, addresses, attacker):
        self.box = {}
        run("ip", "link", "add", "wire", "type", "bridge")
        run("ip", "link", "set", "wire", "up")
        for name, ip in addresses.items():
            self.plug_in(name, ip)
        self.raw = self.raw_socket(attacker)

    def plug_in(self, name, ip):
        run("ip", "netns", "add", name)
        run("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "n0",
            "netns", name)
        run("ip", "link", "set", f"to-{name}", "master", "wire", "up")
        run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", name, "addr", "add", f"{ip}/24", "dev", "n0")
        run("ip", "-n", name, "link", "set", "n0", "up")
        # what is sent in one piece arrives as packets, as from a card
        run("ip", "netns", "exec", name, "ethtool", "-K", "n0", "tx-udp-segmentation",
            "off")
        self.box[name] = Box(name, ip, ["ip", "netns", "exec", name])

    def hold_back_opens(self, name):
        """What says OPEN with a secret does not reach box @name, until let_in()."""
        rules = f"""table inet opens {{
            chain input {{
                type filter hook input priority 0
                meta l4proto udp @th,64,8 {OPEN} @th,160,32 != 0 counter drop
            }}
        }}"""
        run(*self.box[name].inside, "nft", rules)

    def let_in(self, name):
        """Return: were there any?"""
        inside = self.box[name].inside
        told = subprocess.run([*inside, "nft", "list", "table", "inet", "opens"],
                              check=True, capture_output=True, text=True).stdout
        run(*inside, "nft", "delete", "table", "inet", "opens")
        return "counter packets 0" not in told

    @staticmethod
    def raw_socket(name):
        """It stays in the namespace in which it was made."""
        with open("/proc/self/ns/net", "rb") as ours:
            enter(f"/run/netns/{name}")
            sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
            enter(f"/proc/self/fd/{ours.fileno()}")
        return sock

    def spoof(self, src, sport, dst, dport, payload):
        self.raw.sendto(udp(src, sport, dst, dport, payload), (dst, 0))

    def unreachable(self, src, sport, dst, dport):
        """Nobody is at @sport of @src, @dst is told."""
        self.raw.sendto(port_unreachable(src, dst, dport, sport), (dst, 0))
