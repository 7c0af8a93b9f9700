#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""interop.py BUILD CONDITION [PART-OF-A-NAME]

Boots the guest (../guest.sh), runs there the cases of inside.py in one
condition of cases.py, nopin against the kernel's rdma_rxe, and has tshark
dissect every packet that nopin sent. Prints a line a case and ends with status
0 if all was well, 77 where the guest cannot be had.
"""
import os
import shutil
import subprocess
import sys
import tempfile

import cases

HERE = os.path.dirname(os.path.abspath(__file__))
GUEST = os.path.join(os.path.dirname(HERE), "guest.sh")
SKIPPED = 77
ROCE_PORT = "4791"
# What there is of an InfiniBand packet in RoCEv2; 0xC0 and above is ours alone.
OPCODES = {*range(0x00, 0x18), cases.OPCODE_DATAGRAM}
# A dissector may stop with an exception (a protocol _ws.malformed), or say in
# the summary that a length is wrong; the InfiniBand one does that.
FIELDS = ["udp.dstport", "infiniband.bth.opcode", "frame.protocols",
          "_ws.col.Info", "_ws.expert.message", "udp.payload"]


def dissect(path):
    """Yields what tshark says of each packet: a dict of FIELDS."""
    command = ["tshark", "-n", "-r", path, "-T", "fields", "-E",
               "separator=/t"]
    for field in FIELDS:
        command += ["-e", field]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL) as tshark:
        for line in tshark.stdout:
            values = line.rstrip("\n").split("\t")
            yield dict(zip(FIELDS, values + [""] * len(FIELDS)))
    if tshark.returncode:
        sys.exit(f"tshark ended with status {tshark.returncode}")


def fault_of(packet):
    """What is wrong with a packet that nopin sent, or None."""
    if packet["udp.dstport"] != ROCE_PORT:
        # Only the question "are you a nopin?" goes to any other port.
        return None if int(packet["udp.payload"][:2], 16) >= 0xC0 else (
            f"a standard packet to port {packet['udp.dstport']}")
    said = " ".join(packet[name] for name in FIELDS[2:5])
    if "malformed" in said.lower():
        return f"{said}: {packet['udp.payload'][:120]}"
    opcode = packet["infiniband.bth.opcode"]
    if not opcode:
        return f"not InfiniBand: {packet['udp.payload'][:120]}"
    if int(opcode) not in OPCODES:
        return f"opcode {opcode} to port {ROCE_PORT}"
    return None


def judge_capture(path, condition):
    """Dissects a capture. Returns whether nothing is wrong with it."""
    must = set(cases.OPCODES)
    if any(program.datagrams for program, *_ in cases.chosen(condition)):
        must.add(cases.OPCODE_DATAGRAM)
    seen, faults = set(), []
    count = 0
    for packet in dissect(path):
        count += 1
        fault = fault_of(packet)
        if fault:
            faults.append(fault)
        elif packet["udp.dstport"] == ROCE_PORT:
            seen.add(int(packet["infiniband.bth.opcode"]))
    missing = must - seen
    print(f"tshark: {count} packets of nopin, {len(faults)} wrong; opcodes: "
          + " ".join(f"0x{op:02x}" for op in sorted(seen)))
    for fault in faults[:20]:
        print(f"  {fault}")
    if missing:
        print("  never sent: "
              + " ".join(f"0x{op:02x}" for op in sorted(missing)))
    return not faults and not missing


def main():
    build, condition = os.path.abspath(sys.argv[1]), sys.argv[2]
    only = sys.argv[3:4]
    for what in (None if os.geteuid() == 0 else "the guest reads this "
                 "machine's files: needs root",
                 None if shutil.which("tshark") else "no tshark",
                 None if shutil.which("dumpcap") else "no dumpcap"):
        if what:
            print(f"SKIP: {what}")
            return SKIPPED
    with tempfile.TemporaryDirectory() as out:
        status = subprocess.run(
            [GUEST, "--out", out, "python3", f"{HERE}/inside.py", build,
             condition, *only], check=False).returncode
        capture = f"{out}/capture.pcap"
        if status == SKIPPED or not cases.CONDITIONS[condition].captured:
            return status
        if not os.path.exists(capture):
            print("there is no capture")
            return 1
        good = judge_capture(capture, condition) or bool(only)
        return status or (0 if good else 1)


if __name__ == "__main__":
    sys.exit(main())
