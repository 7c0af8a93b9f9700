/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transport_ud.c: datagrams, as a transport service; they come and go in ud_rx.c and ud_tx.c. */
#include "base/check.h"
#include "wire/opcode.h"
#include "xport/attr.h"
#include "xport/qp.h"
#include "xport/transport.h"
#include "xport/ud.h"

static const struct qp_edge ud_edges[] = {
	{QPS_RESET, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY, 0},
	{QPS_INIT, QPS_INIT, 0, QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY},
	{QPS_INIT, QPS_RTR, 0, QPA_PKEY_INDEX | QPA_QKEY},
	{QPS_RTR, QPS_RTS, QPA_SQ_PSN, QPA_QKEY},
	{QPS_RTS, QPS_RTS, 0, QPA_QKEY},
	{QPS_RTS, QPS_SQD, 0, QPA_EN_SQD_ASYNC_NOTIFY},
	{QPS_SQD, QPS_RTS, 0, QPA_QKEY},
	{QPS_SQD, QPS_SQD, 0, QPA_PKEY_INDEX | QPA_QKEY},
	{QPS_SQE, QPS_RTS, 0, QPA_QKEY},
};

static void ud_ready(struct qp *qp, struct peer *peer)
{
	(void)peer;
	qp->attr.path_mtu = qp->cfg.mtu;
}

const struct transport transport_ud = {
	.edges = ud_edges,
	.num_edges = ARRAY_SIZE(ud_edges),
	.packets = OPF_UD,
	.ready = ud_ready,
	.timeout = ud_timeout,
	.tx = ud_tx,
	.tx_commit = ud_tx_commit,
	.rx = ud_rx,
	.rx_commit = ud_rx_commit,
	.drain = ud_drain,
};
