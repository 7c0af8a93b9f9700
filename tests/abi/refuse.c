/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* refuse.c: what nopin does not implement refuses with EOPNOTSUPP and does
 * nothing else: the verbs of verbs.h on an opened device, and every exported
 * symbol that is a stub, called by name and version.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	printf("%s: %s\n", what, strerror(errno));
	failures++;
}

#define RETURNS(call) (errno = 0, check((call) == EOPNOTSUPP, #call))
#define NULL_OF(call)                                                          \
	(errno = 0, check((call) == NULL && errno == EOPNOTSUPP, #call))

/* --- by name and version ---------------------------------------------------------- */

enum kind { ERR, NULL_, NEG, NONE };

#define KIND_ERR			 ERR
#define KIND_NULL			 NULL_
#define KIND_NEG			 NEG
#define KIND_NONE			 NONE
#define STUB(kind, name, node, exported) {KIND_##kind, exported},
#define STUB_DATA(name)

static const struct stub {
	enum kind kind;
	const char *exported; /* NAME@VERSION or NAME@@VERSION */
} stubs[] = {
#include "verbs/stubs.inc"
};

static void call_stub(void *lib, const struct stub *stub)
{
	static const long results[] = {EOPNOTSUPP, 0, -1, 0};
	char name[128];
	char *version;
	long (*fn)(long, long, long, long, long, long);
	long result;

	snprintf(name, sizeof(name), "%s", stub->exported);
	version = strchr(name, '@');
	*version++ = '\0';
	version += *version == '@';
	*(void **)&fn = dlvsym(lib, name, version);
	if (!fn) {
		check(false, stub->exported);
		return;
	}
	errno = 0;
	result = fn(0, 0, 0, 0, 0, 0);
	if (stub->kind == ERR || stub->kind == NEG)
		result = (int)result;
	check(result == results[stub->kind] &&
		      errno == (stub->kind == NONE ? 0 : EOPNOTSUPP),
	      stub->exported);
}

static void check_stubs(void)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_NOW);
	const size_t num = sizeof(stubs) / sizeof(stubs[0]);

	check(num > 50, "too few stubs");
	for (size_t i = 0; i < num; i++)
		call_stub(lib, &stubs[i]);
	printf("%zu stubs\n", num);
}

/* --- verbs -------------------------------------------------------------------------- */

static void check_context(struct ibv_context *ctx)
{
	struct ibv_xrcd_init_attr xrcd = {0};
	struct ibv_srq_init_attr_ex srq_ex = {
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_XRC,
	};
	struct ibv_td_init_attr td = {0};
	struct ibv_parent_domain_init_attr parent = {0};
	struct ibv_wq_init_attr wq = {0};
	struct ibv_rwq_ind_table_init_attr table = {0};
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_counters_init_attr counters = {0};
	struct ibv_flow_action_esp_attr esp = {0};
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_qp_open_attr open = {0};

	NULL_OF(ibv_open_xrcd(ctx, &xrcd));
	NULL_OF(ibv_create_srq_ex(ctx, &srq_ex));
	NULL_OF(ibv_alloc_td(ctx, &td));
	NULL_OF(ibv_alloc_parent_domain(ctx, &parent));
	NULL_OF(ibv_create_wq(ctx, &wq));
	NULL_OF(ibv_create_rwq_ind_table(ctx, &table));
	NULL_OF(ibv_alloc_dm(ctx, &dm));
	NULL_OF(ibv_create_counters(ctx, &counters));
	NULL_OF(ibv_create_flow_action_esp(ctx, &esp));
	NULL_OF(ibv_open_qp(ctx, &open));
	NULL_OF(ibv_import_device(ctx->cmd_fd));
	NULL_OF(ibv_import_pd(ctx, 1));
	NULL_OF(ibv_import_dm(ctx, 1));
	RETURNS(ibv_query_rt_values_ex(ctx, &values));
}

static void check_pd(struct ibv_pd *pd)
{
	struct ibv_ah_attr group = {
		.grh.dgid.raw = {0xff, 0x0e}, .is_global = 1, .port_num = 1};

	NULL_OF(ibv_alloc_mw(pd, IBV_MW_TYPE_1));
	NULL_OF(ibv_alloc_mw(pd, IBV_MW_TYPE_2));
	NULL_OF(ibv_alloc_null_mr(pd));
	NULL_OF(ibv_import_mr(pd, 1));
	NULL_OF(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, 0, 0));
	NULL_OF(ibv_reg_dm_mr(pd, (struct ibv_dm *)pd, 0, 1, 0));
	NULL_OF(ibv_create_ah(pd, &group));
}

static void check_qp(struct ibv_qp *qp)
{
	union ibv_gid gid = {.raw = {0xff}};
	struct ibv_modify_cq_attr moderate = {IBV_CQ_ATTR_MODERATE, {1, 1}};
	struct ibv_qp_rate_limit_attr rate = {0};
	struct ibv_flow_attr flow = {0};
	struct ibv_ece ece = {0};

	RETURNS(ibv_attach_mcast(qp, &gid, 0));
	RETURNS(ibv_detach_mcast(qp, &gid, 0));
	RETURNS(ibv_set_ece(qp, &ece));
	RETURNS(ibv_query_ece(qp, &ece));
	RETURNS(ibv_modify_cq(qp->send_cq, &moderate));
	RETURNS(ibv_modify_qp_rate_limit(qp, &rate));
	NULL_OF(ibv_create_flow(qp, &flow));
	NULL_OF(ibv_create_qp(
		qp->pd, &(struct ibv_qp_init_attr){.send_cq = qp->send_cq,
						   .recv_cq = qp->recv_cq,
						   .qp_type = IBV_QPT_UC}));
}

static void check_verbs(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = ibv_open_device(list[0]);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.cap = {1, 1, 1, 1, 0},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	check(qp != NULL, "ibv_create_qp");
	check_context(ctx);
	check_pd(pd);
	check_qp(qp);
	check(ibv_destroy_qp(qp) == 0, "ibv_destroy_qp");
	check(ibv_destroy_cq(cq) == 0, "ibv_destroy_cq");
	check(ibv_dealloc_pd(pd) == 0, "ibv_dealloc_pd");
	check(ibv_close_device(ctx) == 0, "ibv_close_device");
	ibv_free_device_list(list);
}

int main(void)
{
	check_stubs();
	check_verbs();
	return failures != 0;
}
