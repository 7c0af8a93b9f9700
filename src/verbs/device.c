/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device.c: the list of devices (one, nopin0, wherever there is an address to
 * offer), its names, opening and closing it. What the device says about itself
 * is in query.c.
 */
#include "base/be.h"
#include "nic/async.h"
#include "nic/nic.h"
#include "verbs/cq_api.h"
#include "verbs/mr_api.h"
#include "verbs/object.h"
#include "verbs/post.h"
#include "verbs/qp_api.h"
#include "verbs/query.h"
#include "verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>

/* Provider libraries that programs drag in (libmlx5, libefa) ask whether a
 * device is theirs by looking at pointers behind struct ibv_device, where
 * theirs would have them. There must be zeroes.
 */
enum { DEVICE_BYTES = 1024 };

static union {
	struct ibv_device dev;
	uint8_t block[DEVICE_BYTES];
} the = {
	.dev =
		{
			.node_type = IBV_NODE_CA,
			.transport_type = IBV_TRANSPORT_IB,
			.name = DEVICE_NAME,
			.dev_name = UVERBS_NAME,
			.dev_path = "/sys/class/infiniband_verbs/" UVERBS_NAME,
			.ibdev_path = "/sys/class/infiniband/" DEVICE_NAME,
		},
};

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list;
	const int rc = nic_present();

	if (num_devices)
		*num_devices = 0;
	if (rc && rc != -ENODEV)
		return fail(-rc);
	list = calloc(2, sizeof(struct ibv_device *));
	if (!list)
		return fail(ENOMEM);
	if (rc)
		return list;
	list[0] = &the.dev;
	if (num_devices)
		*num_devices = 1;
	return list;
}

/* The devices themselves are never freed, so none is invalidated. */
void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

int ibv_get_device_index(struct ibv_device *device)
{
	return device == &the.dev ? 0 : -1;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	struct nic_attr attr;
	struct nic *nic;
	__be64 guid = 0;
	be64_t be;

	if (device != &the.dev || nic_get(&nic))
		return 0;
	(void)nic_query(nic, &attr);
	nic_put(nic);
	be = be64_put(attr.guid);
	memcpy(&guid, &be, sizeof(guid));
	return guid;
}

static int count_cpus(void)
{
	cpu_set_t set;

	if (pthread_getaffinity_np(pthread_self(), sizeof(set), &set))
		return 1;
	return MAX(CPU_COUNT(&set), 1);
}

/* Calls that reach us through a pointer in the context. An absent one makes the
 * inline function of verbs.h answer EOPNOTSUPP by itself.
 */
static void set_ops(struct verbs_context *v)
{
	v->query_port = query_port_ext;
	v->query_device_ex = query_device_ext;
	v->advise_mr = advise_mr;
	v->create_cq_ex = create_cq_ext;
	v->create_qp_ex = create_qp_ext;
	v->context.ops.poll_cq = poll_cq;
	v->context.ops.req_notify_cq = req_notify_cq;
	v->context.ops.post_send = post_send;
	v->context.ops.post_recv = post_recv;
	v->context.ops.post_srq_recv = post_srq_recv;
}

static struct vctx *vctx_new(void)
{
	struct vctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	pthread_mutex_init(&ctx->lock, NULL);
	for (int kind = 0; kind < VOBJ_NUM; kind++)
		list_init(&ctx->objs[kind]);
	set_ops(&ctx->v);
	ctx->v.sz = sizeof(ctx->v);
	ctx->v.context.device = &the.dev;
	ctx->v.context.num_comp_vectors = count_cpus();
	ctx->v.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&ctx->v.context.mutex, NULL);
	return ctx;
}

static void vctx_free(struct vctx *ctx)
{
	pthread_mutex_destroy(&ctx->v.context.mutex);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct vctx *ctx;
	int rc;

	if (device != &the.dev)
		return fail(ENODEV);
	ctx = vctx_new();
	if (!ctx)
		return fail(ENOMEM);
	rc = nic_get(&ctx->nic);
	if (rc)
		goto free_ctx;
	rc = nic_async_open(ctx->nic, &ctx->async, &ctx->v.context.async_fd);
	if (rc)
		goto put_nic;
	/* There is no command channel; some set flags on it all the same. */
	ctx->v.context.cmd_fd = ctx->v.context.async_fd;
	return &ctx->v.context;

put_nic:
	nic_put(ctx->nic);
free_ctx:
	vctx_free(ctx);
	return fail(-rc);
}

int ibv_close_device(struct ibv_context *context)
{
	struct vctx *ctx = vctx_of(context);

	if (in_child(context))
		return ENODEV;
	objects_close(ctx);
	nic_async_close(ctx->async);
	nic_put(ctx->nic);
	vctx_free(ctx);
	return 0;
}

/* fork() needs no preparation where no page is pinned: a child gets ENODEV for what
 * it inherited. */
int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}
