#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""pyverbs_rc.py: a reliable connection from Python: SEND, WRITE and READ
between two QPs of the one device. Says nothing unless it fails."""
import sys
import time

try:
    from pyverbs import enums as e
    from pyverbs.addr import AHAttr, GlobalRoute
    from pyverbs.cq import CQ
    from pyverbs.device import Context, get_device_list
    from pyverbs.mr import MR
    from pyverbs.pd import PD
    from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
    from pyverbs.wr import SGE, RecvWR, SendWR
except ModuleNotFoundError:
    print("SKIP: python3-pyverbs is not installed")
    sys.exit(77)

SIZE = 100000
PATIENCE_S = 20


class End:
    def __init__(self, ctx):
        access = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
                  | e.IBV_ACCESS_REMOTE_READ)
        self.ctx = ctx
        self.pd = PD(ctx)
        self.cq = CQ(ctx, 16)
        self.mr = MR(self.pd, SIZE, access)
        cap = QPCap(max_send_wr=8, max_recv_wr=8)
        self.qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq,
                                         rcq=self.cq, cap=cap, sq_sig_all=1))

    def connect(self, peer):
        gid = self.ctx.query_gid(1, 0).gid
        attr = QPAttr(port_num=1)
        attr.dest_qp_num = peer.qp.qp_num
        attr.path_mtu = e.IBV_MTU_1024
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
        attr.min_rnr_timer = 12
        attr.timeout = 14
        attr.retry_cnt = attr.rnr_retry = 7
        attr.qp_access_flags = (e.IBV_ACCESS_REMOTE_WRITE
                                | e.IBV_ACCESS_REMOTE_READ)
        attr.ah_attr = AHAttr(port_num=1, is_global=1,
                              gr=GlobalRoute(dgid=gid_of(gid), sgid_index=0))
        self.qp.to_rts(attr)

    def sge(self):
        return SGE(self.mr.buf, SIZE, self.mr.lkey)

    def wait(self):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            count, wcs = self.cq.poll()
            if count:
                assert wcs[0].status == e.IBV_WC_SUCCESS, wcs[0]
                return wcs[0]
        raise AssertionError("no completion")


def gid_of(text):
    from pyverbs.addr import GID
    return GID(text)


def one_sided(end, peer, opcode):
    wr = SendWR(opcode=opcode, num_sge=1, sg=[end.sge()])
    wr.set_wr_rdma(peer.mr.rkey, peer.mr.buf)
    end.qp.post_send(wr)
    end.wait()


def main():
    names = [device.name for device in get_device_list()]
    assert names == [b"nopin0"], names
    ctx = Context(name="nopin0")
    a, b = End(ctx), End(ctx)
    a.connect(b)
    b.connect(a)

    text = bytes(range(250)) * (SIZE // 250)
    a.mr.write(text, SIZE)
    b.qp.post_recv(RecvWR(num_sge=1, sg=[b.sge()]))
    a.qp.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[a.sge()]))
    assert b.wait().byte_len == SIZE
    a.wait()
    assert b.mr.read(SIZE, 0) == text

    a.mr.write(text[::-1], SIZE)
    one_sided(a, b, e.IBV_WR_RDMA_WRITE)
    assert b.mr.read(SIZE, 0) == text[::-1]
    b.mr.write(text, SIZE)
    one_sided(a, b, e.IBV_WR_RDMA_READ)
    assert a.mr.read(SIZE, 0) == text


main()
