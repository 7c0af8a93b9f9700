#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""pyverbs_ud.py: datagrams from Python, there and back: by ibv_post_send() and by
the ibv_wr_ functions, answered at the address that came with them; read from a CQ
and from an extended one. Says nothing unless it fails."""
import sys
import time

try:
    from pyverbs import enums as e
    from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
    from pyverbs.cq import CQ, CQEX, CqInitAttrEx
    from pyverbs.device import Context
    from pyverbs.mr import MR
    from pyverbs.pd import PD
    from pyverbs.qp import QP, QPAttr, QPCap, QPEx, QPInitAttr, QPInitAttrEx
    from pyverbs.wr import SGE, RecvWR, SendWR
except ModuleNotFoundError:
    print("SKIP: python3-pyverbs is not installed")
    sys.exit(77)

SIZE, GRH = 1000, 40
QKEY = 0x11223344
PATIENCE_S = 20


def attr():
    a = QPAttr(port_num=1)
    a.qkey = QKEY
    return a


class End:
    """@extended: with an extended CQ, and the ibv_wr_ functions."""

    def __init__(self, ctx, extended):
        self.pd = PD(ctx)
        self.mr = MR(self.pd, 2 * SIZE, e.IBV_ACCESS_LOCAL_WRITE)
        self.extended = extended
        cap = QPCap(max_send_wr=8, max_recv_wr=8)
        if extended:
            flags = e.IBV_WC_EX_WITH_SRC_QP | e.IBV_WC_EX_WITH_BYTE_LEN
            self.cq = CQEX(ctx, CqInitAttrEx(cqe=16, wc_flags=flags))
            init = QPInitAttrEx(
                qp_type=e.IBV_QPT_UD, scq=self.cq, rcq=self.cq, cap=cap,
                sq_sig_all=1, pd=self.pd,
                comp_mask=(e.IBV_QP_INIT_ATTR_PD
                           | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS),
                send_ops_flags=e.IBV_QP_EX_WITH_SEND)
            self.qp = QPEx(ctx, init, attr())
        else:
            self.cq = CQ(ctx, 16)
            init = QPInitAttr(qp_type=e.IBV_QPT_UD, scq=self.cq, rcq=self.cq,
                              cap=cap, sq_sig_all=1)
            self.qp = QP(self.pd, init, attr())
        assert self.qp.query(e.IBV_QP_QKEY)[0].qkey == QKEY

    def sge(self, length):
        return SGE(self.mr.buf, length, self.mr.lkey)

    def recv(self):
        self.qp.post_recv(RecvWR(num_sge=1, sg=[self.sge(SIZE + GRH)]))

    def poll(self):
        """(opcode, byte_len, src_qp) and, of a plain CQ, the completion."""
        if not self.extended:
            count, wcs = self.cq.poll()
            if not count:
                return None
            assert wcs[0].status == e.IBV_WC_SUCCESS, wcs[0]
            return (wcs[0].opcode, wcs[0].byte_len, wcs[0].src_qp, wcs[0])
        from pyverbs.cq import PollCqAttr
        if self.cq.start_poll(PollCqAttr()):
            return None
        assert self.cq.status == e.IBV_WC_SUCCESS
        found = (self.cq.read_opcode(), self.cq.read_byte_len(),
                 self.cq.read_src_qp(), None)
        self.cq.end_poll()
        return found

    def wait(self):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            found = self.poll()
            if found:
                return found
        raise AssertionError("no completion")

    def send(self, ah, qpn, length):
        if self.extended:
            self.qp.wr_start()
            self.qp.wr_send()
            self.qp.wr_set_ud_addr(ah, qpn, QKEY)
            self.qp.wr_set_sge(self.sge(length))
            self.qp.wr_complete()
        else:
            wr = SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[self.sge(length)])
            wr.set_wr_ud(ah, qpn, QKEY)
            self.qp.post_send(wr)
        assert self.wait()[0] == e.IBV_WC_SEND


def main():
    ctx = Context(name="nopin0")
    gid = ctx.query_gid(1, 0).gid
    a, b = End(ctx, False), End(ctx, True)
    there = AH(a.pd, attr=AHAttr(port_num=1, is_global=1, gr=GlobalRoute(
        dgid=GID(gid), sgid_index=0)))

    text = bytes(range(250)) * (SIZE // 250)
    a.mr.write(text, SIZE)
    b.recv()
    a.send(there, b.qp.qp_num, SIZE)
    opcode, length, sender, _ = b.wait()
    assert opcode == e.IBV_WC_RECV
    assert length == SIZE + GRH and sender == a.qp.qp_num
    assert b.mr.read(SIZE, GRH) == text

    a.recv()
    b.mr.write(text[::-1], SIZE)
    back = AH(b.pd, attr=AHAttr(port_num=1, is_global=1, gr=GlobalRoute(
        dgid=GID(gid), sgid_index=0)))
    b.send(back, sender, SIZE - 1)
    _, length, sender, wc = a.wait()
    assert length == SIZE - 1 + GRH and sender == b.qp.qp_num
    assert wc.wc_flags & e.IBV_WC_GRH
    assert a.mr.read(SIZE - 1, GRH) == text[::-1][:-1]


main()
