/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* g_cold.c: datagrams into a ring of receives whose pages are not there.
 *
 *   g_cold minor|swap RING TOTAL GAP_NS [prefault]
 *
 * A second process sends TOTAL datagrams, one every GAP_NS, into a ring of RING
 * receives, a page each, which is cold when the first one comes. Who has been
 * received is posted again, so the ring is used over and over. The sender stops at
 * nothing and is told nothing. What comes is looked at: whole, in order. prefault:
 * the program has had the pages brought in when it registered them, before they were
 * swapped out.
 */
#include "lib.h"

#include <sched.h>
#include <string.h>
#include <sys/socket.h>

enum {
	QKEY = 0x11111111,
	GRH = 40,
	BYTES = 1024,
	RING_MAX = 4096,
	TOTAL_MAX = 1 << 18,
	SENDS = 64,
	CURVE = 50,
	QUIET_MS = 300, /* nothing more is on its way */
	STAMPS = 2, /* words before the data */
};

static struct {
	const char *kind;
	uint32_t ring, total;
	uint64_t gap_ns;
} arg;

static double latency[TOTAL_MAX], came_us[TOTAL_MAX];

/* --- a QP ------------------------------------------------------------------------ */

/* The CQ of @h is not made for so many receives. */
static struct ibv_cq *recv_cq;

static struct ibv_qp *qp_open(struct host *h)
{
	struct ibv_qp_init_attr init = {.send_cq = h->cq,
					.cap = {.max_send_wr = SENDS,
						.max_recv_wr = RING_MAX,
						.max_send_sge = 1,
						.max_recv_sge = 1},
					.qp_type = IBV_QPT_UD};
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct ibv_qp *qp;

	recv_cq = ibv_create_cq(h->ctx, RING_MAX, NULL, NULL, 0);
	REQUIRE(recv_cq);
	init.recv_cq = recv_cq;
	qp = ibv_create_qp(h->pd, &init);
	REQUIRE(qp);
	REQUIRE(!ibv_modify_qp(qp, &a,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_QKEY));
	a.qp_state = IBV_QPS_RTR;
	REQUIRE(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
	a.qp_state = IBV_QPS_RTS;
	REQUIRE(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN));
	return qp;
}

static void qp_close(struct ibv_qp *qp)
{
	REQUIRE(!ibv_destroy_qp(qp));
	REQUIRE(!ibv_destroy_cq(recv_cq));
}

/* --- the sender --------------------------------------------------------------------- */

static void sent(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	REQUIRE(n == 1 && wc.status == IBV_WC_SUCCESS);
}

static void send_all(struct host *h, struct ibv_qp *qp, struct ibv_ah *ah,
		     uint32_t qpn, struct ibv_mr *mr)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, BYTES, mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND_WITH_IMM,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.ud = {ah, qpn, QKEY}};
	uint64_t *stamp = mr->addr, next = host_now();
	const uint64_t first = next;

	for (uint32_t i = 0; i < arg.total; i++) {
		while (host_now() < next)
			sched_yield();
		next = host_now() + arg.gap_ns;
		stamp[0] = first;
		stamp[1] = host_now();
		host_fill((uint8_t *)(stamp + STAMPS),
			  BYTES - STAMPS * sizeof(*stamp), i);
		wr.imm_data = i;
		REQUIRE(!ibv_post_send(qp, &wr, &bad));
		sent(h->cq);
	}
}

static void sender(int fd)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	struct host h;
	uint32_t qpn;

	host_open(&h);
	mr = host_reg(&h, host_map(NULL, PAGE), PAGE);
	memset(mr->addr, 1, PAGE);
	qp = qp_open(&h);
	attr.grh.dgid = h.gid;
	attr.grh.sgid_index = h.gid_index;
	ah = ibv_create_ah(h.pd, &attr);
	REQUIRE(ah);
	qpn = (uint32_t)host_hear(fd);
	send_all(&h, qp, ah, qpn, mr);
	host_say(fd, 0);
	REQUIRE(!ibv_destroy_ah(ah));
	qp_close(qp);
	host_dereg(mr);
	host_close(&h);
}

/* --- the receiver ---------------------------------------------------------------------- */

static void post(struct ibv_qp *qp, struct ibv_mr *mr, uint8_t *base,
		 uint64_t i)
{
	struct ibv_sge sge = {(uintptr_t)base + i * PAGE, PAGE, mr->lkey};
	struct ibv_recv_wr *bad,
		wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};

	REQUIRE(!ibv_post_recv(qp, &wr, &bad));
}

/* The @n-th that came. */
static void take(const struct ibv_wc *wc, const uint8_t *p, uint32_t n)
{
	static uint32_t before;
	const uint64_t *stamp = (const uint64_t *)(p + GRH);
	const uint64_t now = host_now();

	REQUIRE(wc->status == IBV_WC_SUCCESS && wc->byte_len == GRH + BYTES);
	REQUIRE(n == 0 || wc->imm_data > before);
	before = wc->imm_data;
	host_check((const uint8_t *)(stamp + STAMPS),
		   BYTES - STAMPS * sizeof(*stamp), wc->imm_data);
	came_us[n] = (double)(now - stamp[0]) / US;
	latency[n] = (double)(now - stamp[1]) / US;
}

/* Return: how many came. */
static uint32_t receive_all(struct ibv_qp *qp, struct ibv_mr *mr, uint8_t *base,
			    int fd)
{
	uint64_t quiet = UINT64_MAX, word;
	struct ibv_wc wc;
	uint32_t n = 0;
	int got;

	while (n < arg.total && host_now() < quiet) {
		got = ibv_poll_cq(recv_cq, 1, &wc);
		REQUIRE(got >= 0);
		if (!got) {
			if (quiet == UINT64_MAX &&
			    recv(fd, &word, sizeof(word), MSG_DONTWAIT) > 0)
				quiet = host_now() + QUIET_MS * MS;
			continue;
		}
		take(&wc, base + wc.wr_id * PAGE, n++);
		post(qp, mr, base, wc.wr_id);
		if (quiet != UINT64_MAX)
			quiet = host_now() + QUIET_MS * MS;
	}
	if (quiet == UINT64_MAX)
		host_hear(fd);
	return n;
}

static void report(uint32_t n)
{
	out_row("delivered", "%u", n);
	out_row("sent", "%u", arg.total);
	if (!n)
		return;
	out_row("first", "%.1f", came_us[0]);
	if (n >= 1000)
		out_row("thousandth", "%.1f", came_us[999]);
	for (uint32_t i = 1; i <= CURVE; i++) {
		const uint32_t k = (uint32_t)((uint64_t)n * i / CURVE);

		if (k)
			out_row("curve", "%.1f\t%u", came_us[k - 1], k);
	}
	out_dist("latency", latency, n);
}

static void prefault(struct host *h, struct ibv_mr *mr)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, (uint32_t)mr->length,
			      mr->lkey};

	REQUIRE(!ibv_advise_mr(h->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			       IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
}

int main(int argc, char **argv)
{
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct host h;
	struct cold c;
	uint8_t *base;
	uint32_t n;
	int fd;

	host_start();
	REQUIRE(argc == 5 || (argc == 6 && !strcmp(argv[5], "prefault")));
	arg.kind = argv[1];
	arg.ring = (uint32_t)number(argv[2]);
	arg.total = (uint32_t)number(argv[3]);
	arg.gap_ns = number(argv[4]);
	REQUIRE(arg.ring <= RING_MAX && arg.total <= TOTAL_MAX);
	fd = host_fork(sender);
	host_open(&h);
	cold_open(&c, arg.kind, (size_t)arg.ring * PAGE, 1);
	mr = host_reg(&h, c.base, cold_size(&c));
	if (argc == 6 && c.kind == COLD_SWAP)
		prefault(&h, mr);
	base = cold_round(&c);
	if (argc == 6 && c.kind == COLD_MINOR)
		prefault(&h, mr);
	qp = qp_open(&h);
	for (uint32_t i = 0; i < arg.ring; i++)
		post(qp, mr, base, i);
	host_say(fd, qp->qp_num);
	n = receive_all(qp, mr, base, fd);
	qp_close(qp);
	host_dereg(mr);
	host_close(&h);
	host_join();
	report(n);
	out_counters("receiver");
	return 0;
}
