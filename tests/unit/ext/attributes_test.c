/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attributes_test.c: every attribute of a QP in every transition, through the verbs
 * that programs call: what must be given, what may be, what is refused, and that what
 * was taken is what a query says. The table is IBTA's 91 (vol. 1, 11.2.5.2), as far as
 * there are such QPs, without alternate paths (a kernel refuses those of RoCE, too).
 */
#include "device.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;

enum {
	CAP = IBV_QP_CAP,
	CUR = IBV_QP_CUR_STATE,
	NOTIFY = IBV_QP_EN_SQD_ASYNC_NOTIFY,
	ACCESS = IBV_QP_ACCESS_FLAGS,
	PKEY = IBV_QP_PKEY_INDEX,
	PORT = IBV_QP_PORT,
	QKEY = IBV_QP_QKEY,
	AV = IBV_QP_AV,
	MTU = IBV_QP_PATH_MTU,
	TIMEOUT = IBV_QP_TIMEOUT,
	RETRY = IBV_QP_RETRY_CNT,
	RNR_RETRY = IBV_QP_RNR_RETRY,
	RQ_PSN = IBV_QP_RQ_PSN,
	RD = IBV_QP_MAX_QP_RD_ATOMIC,
	ALT = IBV_QP_ALT_PATH,
	RNR_TIMER = IBV_QP_MIN_RNR_TIMER,
	SQ_PSN = IBV_QP_SQ_PSN,
	DEST_RD = IBV_QP_MAX_DEST_RD_ATOMIC,
	MIG = IBV_QP_PATH_MIG_STATE,
	DEST = IBV_QP_DEST_QPN,
	RATE = IBV_QP_RATE_LIMIT,

	/* what is given besides, almost anywhere */
	LATER = ACCESS | RNR_TIMER | MIG,
};

static const struct transition {
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	int need, may;
} transitions[] = {
	{IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS, 0},
	{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACCESS},
	{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
	 AV | MTU | DEST | RQ_PSN | DEST_RD | RNR_TIMER, ACCESS | PKEY},
	{IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS,
	 TIMEOUT | RETRY | RNR_RETRY | SQ_PSN | RD, LATER},
	{IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0, LATER},
	{IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY},
	{IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_RTS, 0, LATER},
	{IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 LATER | PORT | AV | TIMEOUT | RETRY | RNR_RETRY | RD | DEST_RD | PKEY},
	{IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | QKEY, 0},
	{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | QKEY},
	{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, PKEY | QKEY},
	{IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, SQ_PSN, QKEY},
	{IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, QKEY},
	{IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY},
	{IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_RTS, 0, QKEY},
	{IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_SQD, 0, PKEY | QKEY},
};

#define FIELD(f)                                                               \
	offsetof(struct ibv_qp_attr, f), sizeof(((struct ibv_qp_attr *)0)->f)

/* What a query says of an attribute after it was given. Of NOTIFY nothing: it is over
 * when the queue is drained, so at once here. */
static const struct field {
	int bit;
	size_t at, size;
} fields[] = {
	{ACCESS, FIELD(qp_access_flags)},
	{PKEY, FIELD(pkey_index)},
	{PORT, FIELD(port_num)},
	{QKEY, FIELD(qkey)},
	{AV, FIELD(ah_attr)},
	{MTU, FIELD(path_mtu)},
	{TIMEOUT, FIELD(timeout)},
	{RETRY, FIELD(retry_cnt)},
	{RNR_RETRY, FIELD(rnr_retry)},
	{RQ_PSN, FIELD(rq_psn)},
	{RD, FIELD(max_rd_atomic)},
	{RNR_TIMER, FIELD(min_rnr_timer)},
	{SQ_PSN, FIELD(sq_psn)},
	{DEST_RD, FIELD(max_dest_rd_atomic)},
	{MIG, FIELD(path_mig_state)},
	{DEST, FIELD(dest_qp_num)},
};

/* Values, of two kinds, so that one is seen to take the other's place. */
static struct ibv_qp_attr values(bool other)
{
	struct ibv_qp_attr a = {
		.path_mtu = IBV_MTU_512,
		.qkey = other ? 0x11111111 : 0x22222222,
		.rq_psn = 0xfffff0,
		.sq_psn = 0xfffff1,
		.dest_qp_num = qp->qp_num,
		.qp_access_flags = other ? IBV_ACCESS_REMOTE_READ
					 : IBV_ACCESS_REMOTE_WRITE |
						   IBV_ACCESS_REMOTE_ATOMIC,
		.ah_attr = {.grh = {.hop_limit = other ? 9 : 64,
				    .traffic_class = other ? 0x20 : 0x40,
				    .flow_label = other ? 1 : 2},
			    .sl = other ? 3 : 4,
			    .static_rate = other ? IBV_RATE_10_GBPS
						 : IBV_RATE_MAX,
			    .is_global = 1,
			    .port_num = 1},
		.path_mig_state = IBV_MIG_MIGRATED,
		.port_num = 1,
		.max_rd_atomic = other ? 3 : 4,
		.max_dest_rd_atomic = other ? 5 : 6,
		.min_rnr_timer = other ? 7 : 8,
		.timeout = other ? 9 : 10,
		.retry_cnt = other ? 1 : 2,
		.rnr_retry = other ? 3 : 4,
	};

	assert_int_equal(ibv_query_gid(ctx, 1, 0, &a.ah_attr.grh.dgid), 0);
	return a;
}

static const struct transition *find(enum ibv_qp_state from,
				     enum ibv_qp_state to)
{
	for (size_t i = 0; i < sizeof(transitions) / sizeof(*transitions); i++)
		if (transitions[i].type == qp->qp_type &&
		    transitions[i].from == from && transitions[i].to == to)
			return &transitions[i];
	return NULL;
}

static struct ibv_qp_attr query(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	assert_int_equal(ibv_query_qp(qp, &a, 0, &init), 0);
	assert_int_equal(a.qp_state, a.cur_qp_state);
	return a;
}

/* Return: the error. */
static int modify(struct ibv_qp_attr a, enum ibv_qp_state to, int mask)
{
	a.cur_qp_state = query().qp_state;
	a.qp_state = to;
	return ibv_modify_qp(qp, &a, IBV_QP_STATE | mask);
}

/* Return: what was given on the way. */
static int go_to(enum ibv_qp_state to)
{
	const struct ibv_qp_attr a = values(false);
	int given = 0;

	assert_int_equal(modify(a, IBV_QPS_RESET, 0), 0);
	for (enum ibv_qp_state s = IBV_QPS_RESET; s < to && s < IBV_QPS_SQD;
	     s++) {
		const struct transition *t = find(s, s + 1);

		assert_int_equal(modify(a, s + 1, t->need), 0);
		given |= t->need;
	}
	if (to == IBV_QPS_ERR)
		assert_int_equal(modify(a, IBV_QPS_ERR, 0), 0);
	assert_int_equal(query().qp_state, to);
	return given;
}

/* What was given at first, or (of @mask) last, is what there is. */
static void round_trip(int given, int mask)
{
	const struct ibv_qp_attr was = values(false), is = values(true);
	const struct ibv_qp_attr a = query();

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		const struct field *f = &fields[i];
		const uint8_t *want = (const uint8_t *)(mask & f->bit ? &is
								      : &was);

		if ((mask | given) & f->bit)
			assert_memory_equal((const uint8_t *)&a + f->at,
					    want + f->at, f->size);
	}
}

static void check_bit(const struct transition *t, int bit)
{
	const int mask = bit & t->need ? t->need & ~bit : t->need | bit;
	const bool good = bit & (t->may | CUR | IBV_QP_STATE);
	const int given = go_to(t->from);

	if (modify(values(true), t->to, mask) != (good ? 0 : EINVAL))
		fail_msg("type %d, %d to %d: attribute 0x%x", t->type, t->from,
			 t->to, (unsigned)bit);
	assert_int_equal(query().qp_state, good ? t->to : t->from);
	if (!good || t->to != IBV_QPS_RESET) /* which forgets all */
		round_trip(given, good ? mask : 0);
}

static void open_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = type,
					.cap = {1, 1, 1, 1, 0}};

	qp = ibv_create_qp(pd, &init);
	assert_non_null(qp);
}

static int open_all(void **state)
{
	(void)state;
	ctx = open_device();
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	assert_non_null(cq);
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	return 0;
}

static void check_transition(enum ibv_qp_state from, enum ibv_qp_state to)
{
	const struct transition *t = find(from, to);
	const bool always = to == IBV_QPS_RESET || to == IBV_QPS_ERR;
	const struct transition last = {
		.type = qp->qp_type, .from = from, .to = to};

	if (t || always) {
		for (int i = 0; i < 31; i++)
			check_bit(t ? t : &last, 1 << i);
		return;
	}
	go_to(from);
	assert_int_equal(modify(values(true), to, 0), EINVAL);
	if (to > IBV_QPS_RESET && find(to - 1, to))
		assert_int_equal(
			modify(values(true), to, find(to - 1, to)->need),
			EINVAL);
	assert_int_equal(query().qp_state, from);
}

static void check_type(enum ibv_qp_type type)
{
	open_qp(type);
	for (enum ibv_qp_state from = IBV_QPS_RESET; from <= IBV_QPS_ERR;
	     from++)
		for (enum ibv_qp_state to = IBV_QPS_RESET; to <= IBV_QPS_ERR;
		     to++)
			if (from != IBV_QPS_SQE) /* only errors lead there */
				check_transition(from, to);
}

static void modify__rc(void **state)
{
	(void)state;
	check_type(IBV_QPT_RC);
}

static void modify__ud(void **state)
{
	(void)state;
	check_type(IBV_QPT_UD);
}

/* The state that a program believes in must be the true one. */
static void modify__current_state(void **state)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
				.cur_qp_state = IBV_QPS_SQD};

	(void)state;
	open_qp(IBV_QPT_RC);
	go_to(IBV_QPS_RTS);
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | CUR), EINVAL);
	a.cur_qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | CUR), 0);
	/* not to give a state is to stay */
	a.min_rnr_timer = 3;
	assert_int_equal(ibv_modify_qp(qp, &a, RNR_TIMER), 0);
	assert_int_equal(query().min_rnr_timer, 3);
}

#define BAD(state, bit, field, value)                                          \
	{                                                                      \
		state, bit, FIELD(field), value                                \
	}

/* Values that there are not, each where it may be given. */
static void modify__values(void **state)
{
	static const struct {
		enum ibv_qp_state to;
		int bit;
		size_t at, size;
		uint32_t value;
	} rows[] = {
		BAD(IBV_QPS_INIT, PORT, port_num, 0),
		BAD(IBV_QPS_INIT, PORT, port_num, 2),
		BAD(IBV_QPS_INIT, PKEY, pkey_index, 1),
		BAD(IBV_QPS_RTR, MTU, path_mtu, 0),
		BAD(IBV_QPS_RTR, MTU, path_mtu, IBV_MTU_4096 + 1),
		BAD(IBV_QPS_RTR, DEST, dest_qp_num, 1 << 24),
		BAD(IBV_QPS_RTR, DEST_RD, max_dest_rd_atomic, 17),
		BAD(IBV_QPS_RTR, RNR_TIMER, min_rnr_timer, 32),
		BAD(IBV_QPS_RTR, AV, ah_attr.port_num, 0),
		BAD(IBV_QPS_RTR, AV, ah_attr.port_num, 2),
		BAD(IBV_QPS_RTR, AV, ah_attr.is_global, 0),
		BAD(IBV_QPS_RTR, AV, ah_attr.sl, 16),
		BAD(IBV_QPS_RTR, AV, ah_attr.grh.sgid_index, 255),
		BAD(IBV_QPS_RTS, TIMEOUT, timeout, 32),
		BAD(IBV_QPS_RTS, RD, max_rd_atomic, 17),
		BAD(IBV_QPS_RTS, MIG, path_mig_state, IBV_MIG_REARM),
		BAD(IBV_QPS_RTS, MIG, path_mig_state, IBV_MIG_ARMED),
	};

	(void)state;
	open_qp(IBV_QPT_RC);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ibv_qp_attr a = values(false);
		const int need = find(rows[i].to - 1, rows[i].to)->need;

		memcpy((uint8_t *)&a + rows[i].at, &rows[i].value,
		       rows[i].size);
		go_to(rows[i].to - 1);
		if (modify(a, rows[i].to, need | rows[i].bit) != EINVAL)
			fail_msg("row %zu is taken", i);
		assert_int_equal(query().qp_state, rows[i].to - 1);
	}
}

/* A connection keeps its peer. */
static void modify__another_peer(void **state)
{
	struct ibv_qp_attr a;

	(void)state;
	open_qp(IBV_QPT_RC);
	go_to(IBV_QPS_SQD);
	a = values(true);
	a.ah_attr.grh.dgid.raw[15] ^= 1;
	assert_int_equal(modify(a, IBV_QPS_SQD, AV), EINVAL);
	a = values(true);
	a.ah_attr.grh.sgid_index ^= 1;
	assert_int_equal(modify(a, IBV_QPS_SQD, AV), EINVAL);
	round_trip(AV, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(modify__rc),
		TEST(modify__ud),
		TEST(modify__current_state),
		TEST(modify__values),
		TEST(modify__another_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
