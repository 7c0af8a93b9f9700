/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* demo.h: what the programs of `make demo` share. They are ordinary verbs
 * programs: nothing in here or in them knows of nopin.
 */
#ifndef NOPIN_DEMO_H
#define NOPIN_DEMO_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PAGE = 4096,
	AREAS = 3,
	PROBE_BYTES = 64, /* of the page that is never evicted */
	MS = 1000000, /* in ns */
	LIFE_S = 60, /* SIGALRM ends what outlives the demo */
};

/** enum area_id - The victim's memory; AREA_SLOW may be missing (0 bytes). */
enum area_id { AREA_DISK, AREA_SLOW, AREA_ANON };

/** enum command - What a peer asks the victim for, a byte each. */
enum command {
	CMD_NONE,
	CMD_EVICT, /* begin to evict, without pause */
	CMD_STOP, /* no more */
	CMD_CHECK, /* followed by a uint32_t and so many struct slot */
};

/** struct window - Memory that a peer may access. */
struct window {
	uint64_t va, bytes;
	uint32_t rkey, pad;
};

/**
 * struct hello - What both sides of a connection tell each other over TCP.
 * @area: of the victim
 * @page: of the victim: one page that stays, for the probe
 * @commands: of a client: it will give commands
 */
struct hello {
	uint8_t gid[16];
	uint32_t qpn, psn, commands, pad;
	struct window area[AREAS], page;
};

/** struct slot - A piece of an area; @seq: how often it was written. */
struct slot {
	uint64_t offset;
	uint32_t area, bytes, seq, id;
};

/** struct verdict - The victim's answer to CMD_CHECK. */
struct verdict {
	uint64_t bytes, wrong;
};

/** struct dev - The first verbs device and what is needed of it. */
struct dev {
	struct ibv_context *ctx;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	uint8_t gid[16];
	enum ibv_mtu mtu;
};

/* util.c */

/** now_ns() - CLOCK_MONOTONIC: the same in all processes. */
uint64_t now_ns(void);

/** sleep_until() - Sleep until now_ns() is @ns. */
void sleep_until(uint64_t ns);

/** die() - Print the message and strerror(@err) unless 0; exit with 1. */
__attribute__((noreturn, format(printf, 2, 3))) void die(int err,
							 const char *fmt, ...);

/** number() - Parse @s, decimal, or exit with 1. */
uint64_t number(const char *s);

/** must_send(), must_recv() - All of @n bytes, or exit with 1. */
void must_send(int fd, const void *buf, size_t n);
void must_recv(int fd, void *buf, size_t n);

/** tcp_listen() - On a free port of 127.0.0.1; Return: the socket. */
int tcp_listen(uint16_t *port);

/** tcp_connect() - To 127.0.0.1; Return: the socket. */
int tcp_connect(uint16_t port);

/** fill() - What must be in @s after it was written @s->seq times. */
void fill(const struct slot *s, uint8_t *to);

/** wrong_bytes() - How many of the bytes at @have are not what fill() says. */
uint32_t wrong_bytes(const struct slot *s, const uint8_t *have);

/* slow.c */

/**
 * slow_map() - Memory whose missing pages take @delay_us to come; once only.
 *
 * Return: the memory, which holds zeros; NULL where the kernel does not let us
 * have it: errno, and in @refused what it refused.
 */
uint8_t *slow_map(uint64_t bytes, uint64_t delay_us, const char **refused);

/* link.c */

/** dev_open() - With a CQ of @cqes entries; exits with 1 on failure. */
void dev_open(struct dev *d, int cqes);

/** dev_close() - The CQ, PD and context; nothing may use them any more. */
void dev_close(struct dev *d);

/** dev_qp() - A reliable connection's QP, and in @mine how to reach it. */
struct ibv_qp *dev_qp(struct dev *d, struct hello *mine);

/** dev_connect() - @qp to RTS, towards @peer. */
void dev_connect(const struct dev *d, struct ibv_qp *qp,
		 const struct hello *mine, const struct hello *peer);

/** dev_poll() - Return: up to @n good completions in @wc; others: exit. */
int dev_poll(struct dev *d, int n, struct ibv_wc *wc);

/** dev_wait() - Sleep until @until at the latest, or something may have
 * completed; then dev_poll().
 */
void dev_wait(const struct dev *d, uint64_t until);

/** post() - A WRITE or READ of @bytes at @local. */
void post(struct ibv_qp *qp, enum ibv_wr_opcode op, uint64_t id,
	  const struct ibv_sge *local, uint64_t va, uint32_t rkey);

#endif
