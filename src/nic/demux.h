/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* demux.h: QPNs, and the UDP ports that they name. */
#ifndef NOPIN_NIC_DEMUX_H
#define NOPIN_NIC_DEMUX_H

#include <stdint.h>

struct nic;
struct nic_qp;

enum { QPNS_PER_PORT = 1024 };

/**
 * struct nic_port - A local UDP port and the QPNs that name it.
 * @free:	ring of the QPNs' lower bits that no QP has, [free_at, free_end)
 */
struct nic_port {
	int os_port; /* index in os/, -1: unused */
	uint16_t number;
	uint32_t used;
	struct nic_qp *qp[QPNS_PER_PORT];
	uint16_t free[QPNS_PER_PORT];
	uint32_t free_at, free_end;
};

/** demux_open() - Open the first port. */
int demux_open(struct nic *nic);
int demux_add(struct nic *nic, struct nic_qp *qp, uint32_t *qpn);
void demux_remove(struct nic *nic, struct nic_qp *qp);

struct nic_qp *demux_find(struct nic *nic, uint32_t qpn);
void demux_close(struct nic *nic);

#endif
