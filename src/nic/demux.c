/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* demux.c: a QPN names a UDP port (design D4): its upper 14 bits are the
 * port's index above 49152, the lower 10 are in random order within it. A NIC
 * opens one more port when the ones it has are full. A QPN that was given back
 * is the last to be given again, and a quarter of a port's is always free: what
 * is still on its way to a QP that is gone shall not find another (IBTA chapter
 * 12 has the TimeWait state for that).
 */
#include "nic/demux.h"
#include "base/heap.h"
#include "base/rand.h"
#include "nic/device.h"
#include "nic/nic.h"
#include "nic/qp.h"
#include "os/net.h"
#include "os/wait.h"
#include "wire/roce.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static uint32_t port_prefix(const struct nic_port *p)
{
	return (uint32_t)(p->number - QPN_PORT_BASE) << 10;
}

static void port_give(struct nic_port *p, uint32_t low)
{
	p->free[p->free_end++ % QPNS_PER_PORT] = (uint16_t)low;
}

/* All QPNs of the port, in random order. */
static void port_shuffle(struct nic *nic, struct nic_port *p)
{
	for (uint32_t low = 0; low < QPNS_PER_PORT; low++)
		if (port_prefix(p) + low >= 2) /* 0, 1: management */
			port_give(p, low);
	for (uint32_t i = p->free_end - 1; i > 0; i--) {
		uint32_t k = (uint32_t)(rnd_next(&nic->rnd) % (i + 1));
		uint16_t low = p->free[i];

		p->free[i] = p->free[k];
		p->free[k] = low;
	}
}

static int port_open(struct nic *nic, struct nic_port **out)
{
	struct nic_port *p;
	uint16_t number;
	int i;

	p = heap_alloc(sizeof(*p));
	if (!p)
		return -ENOMEM;
	i = os_port_open(nic->os, 0, &number);
	if (i < 0) {
		heap_free(p);
		return i;
	}
	p->os_port = i;
	p->number = number;
	port_shuffle(nic, p);
	nic->ports[i] = p;
	os_kick(nic->os); /* a thread that sleeps does not know this port yet */
	*out = p;
	return 0;
}

static_assert(NIC_MAX_QP <= (OS_PORTS_MAX - 1) * QPNS_PER_PORT * 3 / 4,
	      "a number for each; one port may be 4791");

static int port_with_room(struct nic *nic, struct nic_port **out)
{
	for (int i = 0; i < OS_PORTS_MAX; i++) {
		struct nic_port *p = nic->ports[i];

		if (p && p->used < QPNS_PER_PORT * 3 / 4) {
			*out = p;
			return 0;
		}
	}
	return port_open(nic, out);
}

int demux_open(struct nic *nic)
{
	struct nic_port *p;

	return port_open(nic, &p);
}

int demux_add(struct nic *nic, struct nic_qp *qp, uint32_t *qpn)
{
	struct nic_port *p;
	uint32_t low;
	int err;

	err = port_with_room(nic, &p);
	if (err)
		return err;
	low = p->free[p->free_at++ % QPNS_PER_PORT];
	p->qp[low] = qp;
	p->used++;
	qp->port = p;
	*qpn = port_prefix(p) | low;
	return 0;
}

void demux_remove(struct nic *nic, struct nic_qp *qp)
{
	struct nic_port *p = qp->port;

	(void)nic;
	p->qp[qp->qp.cfg.qpn % QPNS_PER_PORT] = NULL;
	port_give(p, qp->qp.cfg.qpn % QPNS_PER_PORT);
	p->used--;
}

struct nic_qp *demux_find(struct nic *nic, uint32_t qpn)
{
	for (int i = 0; i < OS_PORTS_MAX; i++) {
		struct nic_port *p = nic->ports[i];

		if (p && port_prefix(p) == (qpn & ~(uint32_t)0x3ff))
			return p->qp[qpn % QPNS_PER_PORT];
	}
	return NULL;
}

void demux_close(struct nic *nic)
{
	for (int i = 0; i < OS_PORTS_MAX; i++) {
		if (!nic->ports[i])
			continue;
		os_port_close(nic->os, nic->ports[i]->os_port);
		heap_free(nic->ports[i]);
		nic->ports[i] = NULL;
	}
}
