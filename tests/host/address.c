/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* address.c: addresses, links and MTU change while the device is open, in a network
 * namespace of its own: the GID table follows, with indexes that stay, events come,
 * the port and the files of the device say the same. A connection whose address goes
 * tries on, and works again when the address is back.
 *
 * Whatever is to come is waited for: nothing here looks at a clock.
 */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* exported by every libibverbs, declared nowhere */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
			size_t size);

#define PORT_DIR "/sys/class/infiniband/nopin0/ports/1"

static struct host h;
static int slots; /* of the table */

static void sh(const char *command)
{
	REQUIRE(system(command) == 0);
}

/* Which it is in the table, or -1. */
static int find(uint8_t third, uint8_t last)
{
	const uint8_t want[16] = {[10] = 0xff, 0xff, 10, 7, third, last};
	struct ibv_port_attr port;
	union ibv_gid gid;
	int at = -1;

	REQUIRE(ibv_query_port(h.ctx, 1, &port) == 0);
	REQUIRE_EQ((uint64_t)port.gid_tbl_len, (uint64_t)slots);
	for (int i = slots - 1; i >= 0; i--) {
		REQUIRE(ibv_query_gid(h.ctx, 1, i, &gid) == 0);
		if (!memcmp(gid.raw, want, sizeof(want)))
			at = i;
	}
	return at;
}

/* Blocks until an event of the port comes. */
static void expect(enum ibv_event_type type)
{
	struct ibv_async_event ev;

	REQUIRE(ibv_get_async_event(h.ctx, &ev) == 0);
	ibv_ack_async_event(&ev);
	REQUIRE_EQ(ev.event_type, type);
	REQUIRE_EQ((uint64_t)ev.element.port_num, 1);
}

static void no_event(void)
{
	struct ibv_async_event ev;
	const int flags = fcntl(h.ctx->async_fd, F_GETFL);

	REQUIRE(fcntl(h.ctx->async_fd, F_SETFL, flags | O_NONBLOCK) == 0);
	REQUIRE(ibv_get_async_event(h.ctx, &ev) == -1 && errno == EAGAIN);
	REQUIRE(fcntl(h.ctx->async_fd, F_SETFL, flags) == 0);
}

static void check_file(const char *dir, int index, const char *file,
		       const char *want)
{
	char name[16], got[64] = "";

	snprintf(name, sizeof(name), "%d", index);
	REQUIRE(ibv_read_sysfs_file(dir, file ? file : name, got,
				    sizeof(got)) >= 0);
	if (strcmp(got, want) != 0)
		host_fail(__FILE__, __LINE__, got);
}

static enum ibv_port_state state(void)
{
	struct ibv_port_attr port;

	REQUIRE(ibv_query_port(h.ctx, 1, &port) == 0);
	return port.state;
}

/* --- a connection of two QPs of ours, by GID 0 -------------------------------- */

static struct ibv_qp *qp_new(void)
{
	struct ibv_qp_init_attr init = {.send_cq = h.cq,
					.recv_cq = h.cq,
					.cap = {4, 4, 1, 1, 0},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_qp *qp = ibv_create_qp(h.pd, &init);

	REQUIRE(qp &&
		ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      IBV_QP_ACCESS_FLAGS) == 0);
	return qp;
}

/* Return: as ibv_modify_qp(). */
static int rtr(struct ibv_qp *qp, uint32_t dest, const union ibv_gid *dgid)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.hop_limit = 64, .dgid = *dgid}}};

	return ibv_modify_qp(qp, &a,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

/* Retries for four minutes: whoever adds the address again may be slow. */
static void rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
				.timeout = 23,
				.retry_cnt = 7,
				.rnr_retry = 7};

	REQUIRE(ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void write_to(struct ibv_qp *qp, struct ibv_mr *mr)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, 64, mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
		      .num_sge = 1,
		      .opcode = IBV_WR_RDMA_WRITE,
		      .send_flags = IBV_SEND_SIGNALED,
		      .wr.rdma = {(uintptr_t)mr->addr + 2048, mr->rkey}};

	REQUIRE(ibv_post_send(qp, &wr, &bad) == 0);
}

/* --- what happens ----------------------------------------------------------------- */

static void come_and_go(void)
{
	struct ibv_gid_entry entry;
	int second, third;

	REQUIRE_EQ((uint64_t)find(0, 1), 0);
	sh("ip addr add 10.7.0.2/32 dev v0");
	expect(IBV_EVENT_GID_CHANGE);
	second = find(0, 2);
	REQUIRE(second > 1);
	check_file(PORT_DIR "/gids", second, NULL,
		   "0000:0000:0000:0000:0000:ffff:0a07:0002");
	check_file(PORT_DIR "/gid_attrs/ndevs", second, NULL, "v0");
	/* not an interface that we were told to offer */
	sh("ip addr add 10.7.1.1/32 dev v1");
	sh("ip addr add 10.7.0.3/32 dev v0");
	expect(IBV_EVENT_GID_CHANGE);
	third = find(0, 3);
	REQUIRE(third > 1 && third != second && find(1, 1) < 0);
	sh("ip addr del 10.7.0.2/32 dev v0");
	expect(IBV_EVENT_GID_CHANGE);
	REQUIRE(find(0, 2) < 0 && find(0, 3) == third);
	REQUIRE_EQ((uint64_t)ibv_query_gid_ex(h.ctx, 1, (uint32_t)second,
					      &entry, 0),
		   ENODATA);
	check_file(PORT_DIR "/gids", second, NULL,
		   "0000:0000:0000:0000:0000:0000:0000:0000");
}

/* What is connected tries on; what is not cannot be from an address that is away. */
static void away_and_back(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_qp *a = qp_new(), *b = qp_new(), *late = qp_new();
	struct ibv_mr *mr = host_reg(&h, host_map(NULL, PAGE), PAGE);
	union ibv_gid own;
	struct ibv_wc wc;

	REQUIRE(ibv_query_gid(h.ctx, 1, 0, &own) == 0);
	REQUIRE(rtr(a, b->qp_num, &own) == 0 && rtr(b, a->qp_num, &own) == 0);
	rts(a);
	rts(b);
	write_to(a, mr);
	REQUIRE_EQ(host_status(&h), IBV_WC_SUCCESS);
	sh("ip addr del 10.7.0.1/32 dev v0");
	expect(IBV_EVENT_GID_CHANGE);
	REQUIRE(find(0, 1) < 0);
	attr.grh.dgid = own;
	errno = 0;
	REQUIRE(!ibv_create_ah(h.pd, &attr) && errno == ENODATA);
	REQUIRE_EQ((uint64_t)rtr(late, a->qp_num, &own), ENODATA);
	write_to(a, mr);
	REQUIRE(ibv_poll_cq(h.cq, 1, &wc) == 0);
	sh("ip addr add 10.7.0.1/32 dev v0");
	expect(IBV_EVENT_GID_CHANGE);
	REQUIRE_EQ((uint64_t)find(0, 1), 0);
	REQUIRE_EQ(host_status(&h), IBV_WC_SUCCESS);
	REQUIRE(rtr(late, a->qp_num, &own) == 0);
	REQUIRE(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0 &&
		ibv_destroy_qp(late) == 0);
	host_dereg(mr);
}

static void down_and_up(void)
{
	REQUIRE_EQ(state(), IBV_PORT_ACTIVE);
	check_file(PORT_DIR, 0, "state", "4: ACTIVE");
	sh("ip link set v1 down"); /* the cable */
	expect(IBV_EVENT_PORT_ERR);
	REQUIRE_EQ(state(), IBV_PORT_DOWN);
	check_file(PORT_DIR, 0, "state", "1: DOWN");
	REQUIRE_EQ((uint64_t)find(0, 1), 0);
	sh("ip link set v1 up");
	expect(IBV_EVENT_PORT_ACTIVE);
	REQUIRE_EQ(state(), IBV_PORT_ACTIVE);
}

/* Verbs have no event for it. */
static void mtu(void)
{
	struct ibv_port_attr port = {.active_mtu = h.mtu};

	REQUIRE_EQ(h.mtu, IBV_MTU_1024);
	sh("ip link set v1 mtu 9000 && ip link set v0 mtu 9000");
	while (port.active_mtu != IBV_MTU_4096) {
		REQUIRE(ibv_query_port(h.ctx, 1, &port) == 0);
		host_sleep(MS);
	}
}

int main(void)
{
	struct ibv_port_attr port;

	host_own_network();
	if (system("ip link set lo up && "
		   "ip link add v0 type veth peer name v1 && "
		   /* whose addresses would come when they like */
		   "echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6 && "
		   "ip link set v0 up && ip link set v1 up && "
		   "ip addr add 10.7.0.1/32 dev v0") != 0)
		host_skip("no veth devices");
	setenv("NOPIN_ADDR", "v0", 1);
	host_start();
	host_open(&h);
	REQUIRE(ibv_query_port(h.ctx, 1, &port) == 0);
	slots = port.gid_tbl_len;
	come_and_go();
	away_and_back();
	down_and_up();
	mtu();
	no_event();
	host_close(&h);
	return 0;
}
