/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* victim.c: a verbs program with one connection that does what standard input says, a
 * command a line, and answers each with one line:
 *     connect QPN PSN PEER SELF	to RTS; addresses are IPv4
 *     receive COUNT		that many receives of SLOT bytes, one behind the other
 *     send WORD		its bytes
 *     write RKEY ADDRESS	a word of its own, to memory of the peer
 *     wait MS COUNT		completions: status and bytes of each; COUNT at most
 *     look OFFSET LENGTH	memory, in hexadecimal
 * It begins with a line of what others need to know.
 */
#include <infiniband/verbs.h>

#include <arpa/inet.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MEMORY = 1 << 20, SLOT = 256, FIRST_PSN = 0x345, SEND_AT = MEMORY / 2 };

static struct ibv_context *context;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static char memory[MEMORY] __attribute__((aligned(4096)));
static int received;

static void make_connection(void)
{
	struct ibv_device **all = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {.cap = {.max_send_wr = 64,
						.max_recv_wr = 64,
						.max_send_sge = 1,
						.max_recv_sge = 1},
					.qp_type = IBV_QPT_RC,
					.sq_sig_all = 1};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_pd *pd;

	if (!all || !all[0])
		errx(1, "no device");
	context = ibv_open_device(all[0]);
	pd = context ? ibv_alloc_pd(context) : NULL;
	cq = pd ? ibv_create_cq(context, 256, NULL, NULL, 0) : NULL;
	mr = cq ? ibv_reg_mr(pd, memory, sizeof(memory),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
		: NULL;
	init.send_cq = init.recv_cq = cq;
	qp = mr ? ibv_create_qp(pd, &init) : NULL;
	if (!qp || ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					 IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		err(1, "no connection");
	ibv_free_device_list(all);
}

static union ibv_gid gid_of(const char *ip)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	if (inet_pton(AF_INET, ip, gid.raw + 12) != 1)
		errx(1, "'%s' is no address", ip);
	return gid;
}

static int index_of(const char *ip)
{
	const union ibv_gid want = gid_of(ip);
	union ibv_gid gid;

	for (int i = 0; ibv_query_gid(context, 1, i, &gid) == 0; i++)
		if (!memcmp(&gid, &want, sizeof(gid)))
			return i;
	errx(1, "%s is not ours", ip);
}

static int do_connect(const char *qpn, const char *psn, const char *peer,
		      const char *self)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
				.path_mtu = IBV_MTU_1024,
				.dest_qp_num = (uint32_t)strtoul(qpn, NULL, 0),
				.rq_psn = (uint32_t)strtoul(psn, NULL, 0),
				.max_dest_rd_atomic = 1,
				.min_rnr_timer = 1,
				.ah_attr = {.is_global = 1, .port_num = 1}};
	int ret;

	a.ah_attr.grh.dgid = gid_of(peer);
	a.ah_attr.grh.sgid_index = (uint8_t)index_of(self);
	a.ah_attr.grh.hop_limit = 64;
	ret = ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER);
	/* half a minute of silence: one end is stopped for a while */
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				 .timeout = 20,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .sq_psn = FIRST_PSN,
				 .max_rd_atomic = 1};
	if (!ret)
		ret = ibv_modify_qp(qp, &a,
				    IBV_QP_STATE | IBV_QP_TIMEOUT |
					    IBV_QP_RETRY_CNT |
					    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					    IBV_QP_MAX_QP_RD_ATOMIC);
	return ret;
}

static int do_receive(int count)
{
	int ret = 0;

	while (!ret && count--) {
		struct ibv_sge sge = {(uintptr_t)memory +
					      (size_t)received * SLOT,
				      SLOT, mr->lkey};
		struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

		ret = ibv_post_recv(qp, &wr, &bad);
		received++;
	}
	return ret;
}

static int post(struct ibv_send_wr wr, const char *word)
{
	struct ibv_sge sge = {(uintptr_t)memory + SEND_AT,
			      (uint32_t)strlen(word), mr->lkey};
	struct ibv_send_wr *bad;

	wr.sg_list = &sge;
	wr.num_sge = 1;
	memcpy(memory + SEND_AT, word, strlen(word));
	return ibv_post_send(qp, &wr, &bad);
}

static int do_send(const char *word)
{
	return post((struct ibv_send_wr){.opcode = IBV_WR_SEND}, word);
}

static int do_write(const char *rkey, const char *address)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

	wr.wr.rdma.rkey = (uint32_t)strtoul(rkey, NULL, 0);
	wr.wr.rdma.remote_addr = strtoull(address, NULL, 0);
	return post(wr, "written");
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void do_wait(int ms, int count)
{
	const double end = seconds() + ms * 1e-3;
	struct ibv_wc wc;

	printf("completions");
	while (count && seconds() < end) {
		if (ibv_poll_cq(cq, 1, &wc) != 1) {
			usleep(100);
			continue;
		}
		printf(" %s:%d:%u",
		       wc.opcode & IBV_WC_RECV ? "receive" : "send", wc.status,
		       wc.status || !(wc.opcode & IBV_WC_RECV) ? 0
							       : wc.byte_len);
		count--;
	}
	printf("\n");
}

static void do_look(size_t at, size_t len)
{
	printf("memory ");
	for (size_t i = 0; i < len && at + i < sizeof(memory); i++)
		printf("%02x", (unsigned char)memory[at + i]);
	printf("\n");
}

int main(void)
{
	char line[256], what[16], a[64], b[64], c[64], d[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	make_connection();
	printf("pid %d qpn %u psn %u rkey %u address %llu\n", getpid(),
	       qp->qp_num, FIRST_PSN, mr->rkey,
	       (unsigned long long)(uintptr_t)memory);
	while (fgets(line, sizeof(line), stdin)) {
		const int n = sscanf(line, "%15s %63s %63s %63s %63s", what, a,
				     b, c, d);

		if (n == 5 && !strcmp(what, "connect"))
			printf("error %d\n", do_connect(a, b, c, d));
		else if (n == 2 && !strcmp(what, "receive"))
			printf("error %d\n", do_receive(atoi(a)));
		else if (n == 2 && !strcmp(what, "send"))
			printf("error %d\n", do_send(a));
		else if (n == 3 && !strcmp(what, "write"))
			printf("error %d\n", do_write(a, b));
		else if (n == 3 && !strcmp(what, "wait"))
			do_wait(atoi(a), atoi(b));
		else if (n == 3 && !strcmp(what, "look"))
			do_look(strtoul(a, NULL, 0), strtoul(b, NULL, 0));
		else
			errx(1, "cannot do that: %s", line);
	}
	return 0;
}
