/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dev.c: a device, reliable connections, and what the NIC counted. */
#include "host.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum {
	/* 4.3 s: no page of these tests may cause one, nor half of it an RNR,
	 * nor may a virtual CPU that is taken away for 0.3 s */
	RD_DEPTH = 16,
	TEXT_MAX = 16384,
};

static char text[TEXT_MAX];
static uint64_t locked_before;

/* The line "@name: N ..." of @in, or 0. */
static uint64_t number_of(const char *in, const char *name)
{
	const size_t n = strlen(name);

	for (const char *p = strstr(in, name); p; p = strstr(p + 1, name))
		if ((p == in || p[-1] == '\n' || p[-1] == ' ') && p[n] == ':')
			return strtoull(p + n + 1, NULL, 10);
	return 0;
}

static uint64_t locked_kib(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	static char status[TEXT_MAX];
	size_t n;

	REQUIRE(f);
	n = fread(status, 1, sizeof(status) - 1, f);
	fclose(f);
	status[n] = 0;
	REQUIRE(strstr(status, "VmLck:"));
	return number_of(status, "VmLck");
}

static void find_gid(struct host *h, int gids)
{
	static const uint8_t ipv4[12] = {[10] = 0xff, [11] = 0xff};

	do {
		REQUIRE(h->gid_index < gids);
		REQUIRE(ibv_query_gid(h->ctx, 1, h->gid_index++, &h->gid) == 0);
	} while (memcmp(h->gid.raw, ipv4, sizeof(ipv4)) != 0);
	h->gid_index--;
}

void host_open(struct host *h)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;

	locked_before = locked_kib();
	REQUIRE(list && list[0]);
	*h = (struct host){.ctx = ibv_open_device(list[0])};
	REQUIRE(h->ctx);
	h->nopin = strcmp(ibv_get_device_name(list[0]), "nopin0") == 0;
	ibv_free_device_list(list);
	REQUIRE(ibv_query_port(h->ctx, 1, &port) == 0);
	find_gid(h, port.gid_tbl_len);
	h->mtu = port.active_mtu;
	h->pd = ibv_alloc_pd(h->ctx);
	h->cq = ibv_create_cq(h->ctx, 4 * DEPTH, NULL, NULL, 0);
	REQUIRE(h->pd && h->cq);
}

/* Does the NIC keep memory locked that is registered no more? */
static bool keeps_locked(void)
{
	const char *mode = getenv("NOPIN_REG");

	return mode && !strcmp(mode, "pin-cache");
}

/* The NIC tells its counters on standard error when it closes. */
void host_close(struct host *h)
{
	int out = dup(STDERR_FILENO), to = memfd_create("counters", 0);
	ssize_t n;

	if (h->nopin && !keeps_locked())
		REQUIRE_LE(locked_kib(), locked_before);
	REQUIRE(ibv_destroy_cq(h->cq) == 0);
	REQUIRE(ibv_dealloc_pd(h->pd) == 0);
	REQUIRE(out >= 0 && to >= 0);
	REQUIRE(dup2(to, STDERR_FILENO) >= 0);
	REQUIRE(ibv_close_device(h->ctx) == 0);
	REQUIRE(dup2(out, STDERR_FILENO) >= 0);
	if (h->nopin)
		REQUIRE_LE(locked_kib(), locked_before);
	n = pread(to, text, sizeof(text) - 1, 0);
	REQUIRE(n >= 0);
	text[n] = 0;
	fprintf(stderr, "--- process %d\n%s", (int)getpid(), text);
	close(out);
	close(to);
	REQUIRE(!h->nopin || host_counter("rx_packets") > 0);
	if (host_counter("token_stale"))
		host_off_cpu();
}

uint64_t host_counter(const char *name)
{
	return number_of(text, name);
}

void host_no_retries(void)
{
	static const char *const moved[] = {
		"retransmits", "timeouts", "naks_tx",	    "naks_rx",
		"rnr_tx",      "rnr_rx",   "read_restarts", "kernel_drops",
	};

	char line[64];

	for (size_t i = 0; i < ARRAY_SIZE(moved); i++) {
		if (!host_counter(moved[i]))
			continue;
		snprintf(line, sizeof(line), "%d: %s %llu", (int)getpid(),
			 moved[i], (unsigned long long)host_counter(moved[i]));
		host_retried(line);
	}
}

void host_no_slow_move(uint64_t page_ns)
{
	if (host_counter("engine_majflt"))
		REQUIRE_LE(host_counter("move_sleep_max"), page_ns / 10);
}

struct ibv_mr *host_reg(struct host *h, void *addr, size_t bytes)
{
	struct ibv_mr *mr = ibv_reg_mr(
		h->pd, addr, bytes,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);

	REQUIRE(mr);
	return mr;
}

void host_dereg(struct ibv_mr *mr)
{
	REQUIRE(ibv_dereg_mr(mr) == 0);
}

/* --- connections -------------------------------------------------------------- */

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	REQUIRE(ibv_modify_qp(qp, attr, IBV_QP_STATE | mask) == 0);
}

uint8_t link_timeout = 20, link_retries = 7, link_rnr_retries = 7;
uint32_t link_psn_ahead;
struct ibv_srq *link_srq;

void link_connect(struct link *l, const struct link_card *mine,
		  const struct link_card *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = l->h->mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.sq_psn = (mine->psn + link_psn_ahead) & 0xffffff,
		.max_dest_rd_atomic = RD_DEPTH,
		.max_rd_atomic = RD_DEPTH,
		.min_rnr_timer = 1,
		.timeout = link_timeout,
		.retry_cnt = link_retries,
		.rnr_retry = link_rnr_retries,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid,
				    .sgid_index = l->h->gid_index,
				    .hop_limit = 64}},
	};

	l->va = peer->va;
	l->rkey = peer->rkey;
	modify(l->qp, &attr,
	       IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	attr.qp_state = IBV_QPS_RTR;
	modify(l->qp, &attr,
	       IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr.qp_state = IBV_QPS_RTS;
	modify(l->qp, &attr,
	       IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

void link_make(struct link *l, struct host *h, const struct ibv_mr *mr,
	       struct link_card *card)
{
	struct ibv_qp_init_attr init = {
		.send_cq = h->cq,
		.recv_cq = h->cq,
		.srq = link_srq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = INLINE},
	};

	*card = (struct link_card){.gid = h->gid};
	*l = (struct link){.h = h, .qp = ibv_create_qp(h->pd, &init)};
	REQUIRE(l->qp);
	card->qpn = l->qp->qp_num;
	card->psn = (uint32_t)host_now() & 0xffffff;
	if (mr) {
		card->va = (uintptr_t)mr->addr;
		card->rkey = mr->rkey;
	}
}

void link_open(struct link *l, struct host *h, int fd, const struct ibv_mr *mr)
{
	struct link_card mine, peer;

	link_make(l, h, mr, &mine);
	REQUIRE(send(fd, &mine, sizeof(mine), MSG_NOSIGNAL) == sizeof(mine));
	REQUIRE(recv(fd, &peer, sizeof(peer), MSG_WAITALL) == sizeof(peer));
	link_connect(l, &mine, &peer);
	host_say(fd, 0);
	REQUIRE(host_hear(fd) == 0);
}

void host_say_mr(int fd, const struct ibv_mr *mr)
{
	host_say(fd, (uintptr_t)mr->addr);
	host_say(fd, mr->rkey);
}

void link_hear_mr(struct link *l, int fd)
{
	l->va = host_hear(fd);
	l->rkey = (uint32_t)host_hear(fd);
}

void link_close(struct link *l)
{
	REQUIRE(ibv_destroy_qp(l->qp) == 0);
}

void link_post(struct link *l, enum ibv_wr_opcode op, const struct ibv_mr *mr,
	       const void *addr, uint32_t len, uint64_t offset)
{
	struct ibv_sge sge = {(uintptr_t)addr, len, mr ? mr->lkey : 0};
	struct ibv_send_wr *bad,
		wr = {
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = op,
			.send_flags = mr ? 0 : IBV_SEND_INLINE,
			.wr.rdma = {.remote_addr = l->va + offset,
				    .rkey = l->rkey},
		};

	REQUIRE(ibv_post_send(l->qp, &wr, &bad) == 0);
}

void link_recv(struct link *l, const struct ibv_mr *mr, void *addr,
	       uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)addr, len, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	REQUIRE(ibv_post_recv(l->qp, &wr, &bad) == 0);
}

unsigned host_poll(struct host *h, unsigned n)
{
	struct ibv_wc wc[DEPTH];
	int got = ibv_poll_cq(h->cq, (int)(n < DEPTH ? n : DEPTH), wc);

	REQUIRE(got >= 0);
	for (int i = 0; i < got; i++)
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "a request failed: %s\n",
				ibv_wc_status_str(wc[i].status));
			REQUIRE(!"good completions only");
		}
	return (unsigned)got;
}

void host_rest(unsigned *vain)
{
	enum { YIELDS = 4000, NAP_NS = 50000 };

	if (++*vain < YIELDS)
		sched_yield();
	else
		host_sleep(NAP_NS);
}

void host_wait(struct host *h, unsigned n)
{
	unsigned vain = 0;

	while (n) {
		const unsigned got = host_poll(h, n);

		n -= got;
		if (got)
			vain = 0;
		else
			host_rest(&vain);
	}
}

enum ibv_wc_status host_status(struct host *h)
{
	unsigned vain = 0;
	struct ibv_wc wc;
	int got;

	while (!(got = ibv_poll_cq(h->cq, 1, &wc)))
		host_rest(&vain);
	REQUIRE(got == 1);
	return wc.status;
}
