/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* marks.c: traffic class and hop limit of an address vector are those of every packet:
 * of two connections to the same NIC, whose bursts and ACKs meet there, and of
 * datagrams. Looked at from below, in a network namespace of its own.
 *
 *   marks IPV6
 */
#include "host.h"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

enum {
	CONNS = 2,
	BYTES = 1 << 18,
	SMALL = 200,
	QKEY = 0x1234,
	HELLO = 0xc0,
	HELLO_REPLY = 0xc1,
	IPV4_HEADER = 20,
	IPV6_HEADER = 40
};

static const struct mark {
	uint8_t tclass, hops;
} marks[] = {{106, 7}, {32, 255}, {9, 3}}; /* the last: of datagrams */

static struct host h;
static struct ibv_qp *rc[CONNS], *ud;
static bool v6;
static unsigned seen[3], of_nobody;

static void find_v6(void)
{
	static const uint8_t want[16] = {[15] = 1};

	do
		REQUIRE(ibv_query_gid(h.ctx, 1, ++h.gid_index, &h.gid) == 0);
	while (memcmp(h.gid.raw, want, sizeof(want)) != 0);
}

static struct ibv_ah_attr path(unsigned i)
{
	return (struct ibv_ah_attr){.is_global = 1,
				    .port_num = 1,
				    .grh = {.dgid = h.gid,
					    .sgid_index = h.gid_index,
					    .traffic_class = marks[i].tclass,
					    .hop_limit = marks[i].hops}};
}

static struct ibv_qp *qp_new(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {.send_cq = h.cq,
					.recv_cq = h.cq,
					.cap = {4, 4, 1, 1, 0},
					.qp_type = type};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qkey = QKEY,
				.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						   IBV_ACCESS_REMOTE_READ};
	struct ibv_qp *qp = ibv_create_qp(h.pd, &init);

	REQUIRE(qp &&
		ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      (type == IBV_QPT_UD
					       ? IBV_QP_QKEY
					       : IBV_QP_ACCESS_FLAGS)) == 0);
	return qp;
}

/* Each to itself. */
static void connect_rc(struct ibv_qp *qp, unsigned i)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
				.path_mtu = IBV_MTU_1024,
				.dest_qp_num = qp->qp_num,
				.max_dest_rd_atomic = 1,
				.min_rnr_timer = 12,
				.ah_attr = path(i)};

	REQUIRE(ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER) == 0);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				 .timeout = 17,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .max_rd_atomic = 1};
	REQUIRE(ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void open_ud(void)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR};

	ud = qp_new(IBV_QPT_UD);
	REQUIRE(ibv_modify_qp(ud, &a, IBV_QP_STATE) == 0);
	a.qp_state = IBV_QPS_RTS;
	REQUIRE(ibv_modify_qp(ud, &a, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
}

/* Of a packet, behind the IP header. */
static void look(const uint8_t *udp, struct mark got)
{
	const uint8_t *bth = udp + 8;
	const uint32_t qpn = (uint32_t)bth[5] << 16 | (uint32_t)bth[6] << 8 |
			     bth[7];
	unsigned of = 0;

	if (bth[0] == HELLO || bth[0] == HELLO_REPLY) {
		/* for the first connection, or for datagrams */
		of = got.tclass == marks[CONNS].tclass ? CONNS : 0;
		of_nobody++;
	} else if (qpn == ud->qp_num) {
		of = CONNS;
	} else if (qpn == rc[1]->qp_num) {
		of = 1;
	} else {
		REQUIRE_EQ(qpn, rc[0]->qp_num);
	}
	REQUIRE_EQ(got.tclass, marks[of].tclass);
	REQUIRE_EQ(got.hops, marks[of].hops);
	seen[of]++;
}

/* Return: a UDP packet of our IP version? Others are not judged: neighbours are
 * asked for, and errors told of. */
static bool is_udp(const uint8_t *p, size_t n)
{
	const uint8_t *ip = p + ETH_HLEN;

	if (n < ETH_HLEN + (v6 ? IPV6_HEADER : IPV4_HEADER) ||
	    (p[12] << 8 | p[13]) != (v6 ? ETH_P_IPV6 : ETH_P_IP))
		return false;
	return ip[v6 ? 6 : 9] == IPPROTO_UDP;
}

static void listen_to(int raw)
{
	const size_t udp = ETH_HLEN + (v6 ? IPV6_HEADER : IPV4_HEADER);
	static uint8_t p[1 << 17];
	ssize_t n;

	while ((n = recv(raw, p, sizeof(p), MSG_DONTWAIT)) > 0) {
		const uint8_t *ip = p + ETH_HLEN;

		if (!is_udp(p, (size_t)n))
			continue;
		REQUIRE_LE(udp + 8 + 12, (size_t)n);
		if (v6)
			look(p + udp,
			     (struct mark){(uint8_t)(ip[0] << 4 | ip[1] >> 4),
					   ip[7]});
		else
			look(p + udp, (struct mark){ip[1], ip[8]});
	}
}

static void move_data(int raw)
{
	uint8_t *buf = host_map(NULL, 2 * BYTES);
	struct ibv_mr *mr = host_reg(&h, buf, 2 * BYTES);
	struct ibv_sge sge = {(uintptr_t)buf, BYTES, mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
		      .num_sge = 1,
		      .send_flags = IBV_SEND_SIGNALED,
		      .wr.rdma = {(uintptr_t)buf + BYTES, mr->rkey}};

	/* bursts, and then what is small enough to leave together */
	for (int round = 0; round < 4 + SMALL; round++) {
		sge.length = round < 4 ? BYTES : 8;
		wr.opcode = round & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
		for (unsigned i = 0; i < CONNS; i++)
			REQUIRE(ibv_post_send(rc[i], &wr, &bad) == 0);
		for (unsigned i = 0; i < CONNS; i++)
			REQUIRE_EQ(host_status(&h), IBV_WC_SUCCESS);
		listen_to(raw);
	}
	host_dereg(mr);
}

/* Whoever answers takes the class from what is in front of it. */
static void send_datagram(int raw)
{
	struct ibv_ah_attr attr = path(CONNS), back;
	struct ibv_ah *ah = ibv_create_ah(h.pd, &attr);
	uint8_t *buf = host_map(NULL, PAGE);
	struct ibv_mr *mr = host_reg(&h, buf, PAGE);
	struct ibv_sge in = {(uintptr_t)buf, 1000, mr->lkey},
		       out = {(uintptr_t)buf + 2048, 100, mr->lkey};
	struct ibv_recv_wr *bad_recv, recv_wr = {.sg_list = &in, .num_sge = 1};
	struct ibv_send_wr *bad, wr = {.sg_list = &out,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .wr.ud = {ah, ud->qp_num, QKEY}};
	struct ibv_wc wc;

	REQUIRE(ah && ibv_post_recv(ud, &recv_wr, &bad_recv) == 0);
	REQUIRE(ibv_post_send(ud, &wr, &bad) == 0);
	while (ibv_poll_cq(h.cq, 1, &wc) == 0)
		;
	REQUIRE_EQ(wc.status, IBV_WC_SUCCESS);
	REQUIRE_EQ(wc.opcode, IBV_WC_RECV);
	REQUIRE_EQ(wc.sl, v6 ? 9 : 10);
	REQUIRE(ibv_init_ah_from_wc(h.ctx, 1, &wc, (void *)buf, &back) == 0);
	REQUIRE_EQ(back.grh.traffic_class, attr.grh.traffic_class);
	REQUIRE(memcmp(&back.grh.dgid, &h.gid, sizeof(h.gid)) == 0);
	listen_to(raw);
	REQUIRE(ibv_destroy_ah(ah) == 0);
	host_dereg(mr);
}

int main(int argc, char **argv)
{
	int raw, room = 64 << 20;

	v6 = argc == 2 && !strcmp(argv[1], "IPv6");
	host_own_network();
	/* so that bursts are cut above where we look */
	if (system("ip link set lo up && ethtool -K lo tx-udp-segmentation off "
		   ">/dev/null 2>&1") != 0)
		host_skip("no ethtool");
	raw = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
	if (raw < 0)
		host_skip("no packet sockets");
	setsockopt(raw, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	setenv("NOPIN_ADDR", "lo", 1);
	host_start();
	host_open(&h);
	if (v6)
		find_v6();
	for (unsigned i = 0; i < CONNS; i++) {
		rc[i] = qp_new(IBV_QPT_RC);
		connect_rc(rc[i], i);
	}
	open_ud();
	move_data(raw);
	send_datagram(raw);
	for (unsigned i = 0; i < ARRAY_SIZE(marks); i++)
		REQUIRE(seen[i] > 0);
	REQUIRE(of_nobody > 0);
	for (unsigned i = 0; i < CONNS; i++)
		REQUIRE(ibv_destroy_qp(rc[i]) == 0);
	REQUIRE(ibv_destroy_qp(ud) == 0);
	host_close(&h);
	return 0;
}
