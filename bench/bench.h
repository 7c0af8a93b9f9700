/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bench.h: what the programs of bench/ share: time, statistics, pairs of
 * processes and reliable connections between them. They print lines "NAME
 * VALUE" for bench/run, which knows the targets and prints the table.
 */
#ifndef NOPIN_BENCH_BENCH_H
#define NOPIN_BENCH_BENCH_H

#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum { PAGE = 4096, EXIT_SKIP = 77 };

/* --- util.c ----------------------------------------------------------------- */

uint64_t now_ns(void);
/** die() - Say why and exit with 1; with errno's text if @err is not 0. */
void die(int err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));
/** skip() - Print why this cannot be measured here and exit with 77. */
void skip(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/** quantile() - Sorts @v. @q: 0..1. */
double quantile(double *v, size_t n, double q);
/** untouched() - @bytes of address space in 4 KiB pages, nothing reserved. */
char *untouched(size_t bytes);
/** send_all(), recv_all() - Whole messages over a pipe or socket, or die. */
void send_all(int fd, const void *buf, size_t bytes);
void recv_all(int fd, void *buf, size_t bytes);

/* --- link.c ----------------------------------------------------------------- */

struct ibv_context;
struct ibv_cq;
struct ibv_mr;
struct ibv_pd;
struct ibv_qp;

/** struct dev - The first verbs device, one PD, one CQ for everything. */
struct dev {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	uint32_t mtu; /* enum ibv_mtu */
	uint8_t gid[16];
};

/** struct addr - What the other side must know of a QP and its memory. */
struct addr {
	uint64_t va;
	uint32_t qpn, rkey;
	uint8_t gid[16];
};

void dev_open(struct dev *d, int cqes);
/** dev_reg() - With every access right. Return: NULL with errno. */
struct ibv_mr *dev_reg(struct dev *d, void *addr, size_t bytes);
struct ibv_qp *dev_qp(struct dev *d, uint32_t send_wr, uint32_t recv_wr);
/** dev_srq_qp() - Create a QP that takes its receives from an SRQ of @recv_wr. */
struct ibv_qp *dev_srq_qp(struct dev *d, uint32_t send_wr, uint32_t recv_wr);
/** dev_addr() - Of @qp and, unless NULL, @mr. */
struct addr dev_addr(const struct dev *d, const struct ibv_qp *qp,
		     const struct ibv_mr *mr);
/** dev_connect() - RESET to RTS. */
void dev_connect(const struct dev *d, struct ibv_qp *qp,
		 const struct addr *peer);

/** dev_write(), dev_send() - Post one signaled request from local memory. */
void dev_write(struct ibv_qp *qp, const struct ibv_mr *from, uint32_t bytes,
	       const struct addr *to, uint64_t offset);
void dev_send(struct ibv_qp *qp, const struct ibv_mr *from, uint32_t bytes);
void dev_recv(struct ibv_qp *qp, const struct ibv_mr *to, uint32_t bytes);
/** dev_poll() - Completions taken, all good ones, or die. */
unsigned dev_poll(struct dev *d);

#endif
