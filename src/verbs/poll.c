/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* poll.c: completions, ours to theirs, in the two forms that verbs has: an
 * array of struct ibv_wc, and the iterator of struct ibv_cq_ex. Fast path: no
 * allocation. Polling is also what makes progress (design D9); nic/ does that.
 */
#include "nic/completion.h"
#include "ring/wr_op.h"
#include "verbs/cq_api.h"
#include "verbs/object.h"
#include "verbs/verbs.h"

#include <errno.h>

static enum ibv_wc_opcode opcode_to_verbs(uint8_t op)
{
	static const uint8_t opcodes[WR_NUM] = {
#define WR_OP(name, flags, packet, wc) [WR_##name] = IBV_WC_##wc,
#include "ring/wr_op.def"
#undef WR_OP
	};

	CHECK(op < WR_NUM);
	return (enum ibv_wc_opcode)opcodes[op];
}

static unsigned int flags_to_verbs(uint8_t flags)
{
	unsigned int out = 0;

	if (flags & CQE_GRH)
		out |= IBV_WC_GRH;
	if (flags & CQE_IMM)
		out |= IBV_WC_WITH_IMM;
	if (flags & CQE_INV)
		out |= IBV_WC_WITH_INV;
	return out;
}

/* Ethernet has no service levels. A completion is to say whether a datagram came
 * by IPv4 or IPv6 (IBTA A17.4.5.1), which its header does not always show: where a
 * service level would be there is what adapters put there, and UCX looks for.
 */
enum { SL_UDP = 1 << 3, SL_IPV6 = 1, SL_IPV4 = 2 };

static uint8_t sl_to_verbs(uint8_t flags)
{
	if (!(flags & CQE_GRH))
		return 0;
	return SL_UDP | (flags & CQE_IP4 ? SL_IPV4 : SL_IPV6);
}

static void wc_from_cqe(const struct cqe *cqe, struct ibv_wc *wc)
{
	*wc = (struct ibv_wc){
		.wr_id = cqe->wr_id,
		.status = (enum ibv_wc_status)cqe->status,
		.opcode = opcode_to_verbs(cqe->op),
		.vendor_err = cqe->vendor_err,
		.byte_len = cqe->byte_len,
		.imm_data = cqe->imm,
		.qp_num = cqe->qpn,
		.src_qp = cqe->src_qpn,
		.wc_flags = flags_to_verbs(cqe->flags),
		.sl = sl_to_verbs(cqe->flags),
	};
}

/** poll_cq() - Take up to @num completions. Return: how many, or a negative errno. */
int poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc)
{
	struct nic_cq *nic = vcq_of(cq)->nic;
	struct cqe cqe[16];
	int done = 0;

	while (done < num) {
		const int want = MIN(num - done, (int)ARRAY_SIZE(cqe));
		const int got = nic_cq_poll(nic, (unsigned)want, cqe);

		/* what was taken already must reach the program */
		if (got < 0)
			return done ? done : got;
		for (int i = 0; i < got; i++)
			wc_from_cqe(&cqe[i], &wc[done + i]);
		done += got;
		if (got < want)
			break;
	}
	return done;
}

int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return -nic_cq_arm(vcq_of(cq)->nic, solicited_only != 0);
}

/* --- the iterator ------------------------------------------------------------ */

static struct vcq *poll_of(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct vcq, ex);
}

/* Return: 0, ENOENT: nothing there, or an errno. */
static int next_poll(struct ibv_cq_ex *cq)
{
	struct vcq *q = poll_of(cq);
	const int got = nic_cq_poll(q->nic, 1, &q->cqe);

	if (got <= 0)
		return got ? -got : ENOENT;
	cq->wr_id = q->cqe.wr_id;
	cq->status = (enum ibv_wc_status)q->cqe.status;
	return 0;
}

static void end_poll(struct ibv_cq_ex *cq)
{
	if (!poll_of(cq)->single_threaded)
		pthread_mutex_unlock(&poll_of(cq)->ex_lock);
}

/* A failed start is not followed by an end (ibv_create_cq_ex(3)). */
static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	int rc;

	if (attr->comp_mask)
		return EINVAL;
	if (!poll_of(cq)->single_threaded &&
	    pthread_mutex_trylock(&poll_of(cq)->ex_lock)) {
		if (in_child(cq->context))
			return ENODEV;
		pthread_mutex_lock(&poll_of(cq)->ex_lock);
	}
	rc = next_poll(cq);
	if (rc)
		end_poll(cq);
	return rc;
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
	return opcode_to_verbs(poll_of(cq)->cqe.op);
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
	return poll_of(cq)->cqe.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *cq)
{
	return poll_of(cq)->cqe.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *cq)
{
	return poll_of(cq)->cqe.imm;
}

static uint32_t read_qp_num(struct ibv_cq_ex *cq)
{
	return poll_of(cq)->cqe.qpn;
}

static uint32_t read_src_qp(struct ibv_cq_ex *cq)
{
	return poll_of(cq)->cqe.src_qpn;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *cq)
{
	return flags_to_verbs(poll_of(cq)->cqe.flags);
}

static uint8_t read_sl(struct ibv_cq_ex *cq)
{
	return sl_to_verbs(poll_of(cq)->cqe.flags);
}

/* Ethernet has no LIDs. */
static uint32_t read_slid(struct ibv_cq_ex *cq)
{
	(void)cq;
	return 0;
}

static uint8_t read_no_lid_bits(struct ibv_cq_ex *cq)
{
	(void)cq;
	return 0;
}

/** poll_api_init() - Install the iterator in @q. The readers of fields that create_cq_ext()
 * refuses stay NULL, as with hardware that lacks them.
 */
void poll_api_init(struct vcq *q)
{
	struct ibv_cq_ex *cq = &q->ex;

	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
	cq->read_opcode = read_opcode;
	cq->read_vendor_err = read_vendor_err;
	cq->read_byte_len = read_byte_len;
	cq->read_imm_data = read_imm_data;
	cq->read_qp_num = read_qp_num;
	cq->read_src_qp = read_src_qp;
	cq->read_wc_flags = read_wc_flags;
	cq->read_slid = read_slid;
	cq->read_sl = read_sl;
	cq->read_dlid_path_bits = read_no_lid_bits;
}
