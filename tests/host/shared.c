/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shared.c: several processes send to one whose QPs share a receive queue, into pages that
 * are not there. Each message is whole, in order of its sender, in a receive of its own.
 * Receives are posted by threads of their own; half of them only when the queue says that
 * it has few, so it has to. At the end each QP tells that it has taken its last one, once.
 *
 *   shared SENDERS ROUNDS
 */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { SLOTS = 32, FEW = 8, SLOT = 4 * PAGE, MESSAGE_MAX = 3 * PAGE };

static struct {
	uint64_t senders, rounds;
} arg;

/* What the message @n of sender @who is made of, and how long it is. */
static uint64_t seed_of(uint64_t who, uint64_t n)
{
	return who << 32 | n;
}

static uint32_t length_of(uint64_t who, uint64_t n)
{
	static const uint32_t sizes[] = {0,	      1,	PAGE - 1, PAGE,
					 PAGE + 1,    1023,	1024,	  1025,
					 MESSAGE_MAX, 2 * PAGE, 777};

	return sizes[(who * 5 + n) % ARRAY_SIZE(sizes)];
}

static void sender(int fd)
{
	uint8_t *buf = host_map(NULL, MESSAGE_MAX);
	const uint64_t who = host_hear(fd);
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	host_open(&h);
	mr = host_reg(&h, buf, MESSAGE_MAX);
	link_open(&l, &h, fd, NULL);
	for (uint64_t n = 0; n < arg.rounds; n++) {
		const uint32_t len = length_of(who, n);

		host_fill(buf, len, seed_of(who, n));
		link_post(&l, IBV_WR_SEND, mr, buf, len, 0);
		host_wait(&h, 1);
	}
	host_say(fd, 0);
	host_hear(fd);
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
}

/* --- the receiver ------------------------------------------------------------------ */

struct receiver {
	struct host h;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	uint8_t *mem;
	struct link link[16];
	int fd[16];
	uint64_t next[16]; /* message of each sender */
	pthread_mutex_t lock;
	pthread_cond_t more;
	unsigned now[SLOTS], later[SLOTS]; /* slots to be posted */
	unsigned nows, laters, limits, lasts;
	bool ends;
};

/* Its pages go first. Misaligned, in three pieces. */
static void post(struct receiver *r, unsigned slot)
{
	uint8_t *at = r->mem + (size_t)slot * SLOT;
	const uint32_t off = slot % 3 * 100, cut = PAGE / 2 + slot;
	struct ibv_sge sge[] = {{(uintptr_t)at + off, cut, r->mr->lkey},
				{(uintptr_t)at + off + cut, PAGE, r->mr->lkey},
				{(uintptr_t)at + off + cut + PAGE,
				 MESSAGE_MAX - PAGE - cut, r->mr->lkey}};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = sge, .num_sge = 3};
	struct ibv_recv_wr *bad;

	REQUIRE(madvise(at, SLOT, MADV_DONTNEED) == 0);
	REQUIRE(ibv_post_srq_recv(r->srq, &wr, &bad) == 0);
}

static void *poster(void *arg_)
{
	struct receiver *r = arg_;

	pthread_mutex_lock(&r->lock);
	while (!r->ends) {
		if (r->nows) {
			const unsigned slot = r->now[--r->nows];

			pthread_mutex_unlock(&r->lock);
			post(r, slot);
			pthread_mutex_lock(&r->lock);
		} else {
			pthread_cond_wait(&r->more, &r->lock);
		}
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

static void arm(struct receiver *r)
{
	struct ibv_srq_attr attr = {.srq_limit = FEW};

	REQUIRE(ibv_modify_srq(r->srq, &attr, IBV_SRQ_LIMIT) == 0);
}

static void few_are_left(struct receiver *r)
{
	struct ibv_srq_attr attr;
	unsigned n, slot;

	REQUIRE(ibv_query_srq(r->srq, &attr) == 0);
	REQUIRE_EQ(attr.srq_limit, 0);
	r->limits++;
	do {
		pthread_mutex_lock(&r->lock);
		n = r->laters;
		slot = n ? r->later[--r->laters] : 0;
		pthread_mutex_unlock(&r->lock);
		if (n)
			post(r, slot);
	} while (n);
	arm(r);
}

static void *listener(void *arg_)
{
	struct receiver *r = arg_;
	struct ibv_async_event ev;

	while (r->lasts < arg.senders) {
		REQUIRE(ibv_get_async_event(r->h.ctx, &ev) == 0);
		if (ev.event_type == IBV_EVENT_SRQ_LIMIT_REACHED) {
			REQUIRE(ev.element.srq == r->srq);
			few_are_left(r);
		} else if (ev.event_type == IBV_EVENT_QP_LAST_WQE_REACHED) {
			REQUIRE(ev.element.qp->srq == r->srq);
			r->lasts++;
		}
		ibv_ack_async_event(&ev);
	}
	return NULL;
}

/* Every second one only when few are left. */
static void give_back(struct receiver *r, unsigned slot)
{
	pthread_mutex_lock(&r->lock);
	if (slot % 2)
		r->later[r->laters++] = slot;
	else
		r->now[r->nows++] = slot;
	pthread_cond_signal(&r->more);
	pthread_mutex_unlock(&r->lock);
}

static void look(struct receiver *r, const struct ibv_wc *wc)
{
	const uint8_t *at = r->mem + wc->wr_id * SLOT + wc->wr_id % 3 * 100;
	uint64_t who = 0, n;

	REQUIRE_EQ(wc->status, IBV_WC_SUCCESS);
	while (r->link[who].qp->qp_num != wc->qp_num)
		who++;
	n = r->next[who]++;
	REQUIRE_EQ(wc->byte_len, length_of(who, n));
	host_check(at, wc->byte_len, seed_of(who, n));
	give_back(r, (unsigned)wc->wr_id);
}

static void receive_all(struct receiver *r)
{
	unsigned vain = 0;

	for (uint64_t left = arg.senders * arg.rounds; left;) {
		struct ibv_wc wc[8];
		const int n = ibv_poll_cq(r->h.cq, 8, wc);

		REQUIRE(n >= 0);
		for (int i = 0; i < n; i++)
			look(r, &wc[i]);
		left -= (uint64_t)n;
		if (n)
			vain = 0;
		else
			host_rest(&vain);
	}
}

static void open_all(struct receiver *r)
{
	struct ibv_srq_init_attr init = {
		.attr = {.max_wr = SLOTS, .max_sge = 3}};

	host_open(&r->h);
	r->mem = host_map(NULL, SLOTS * SLOT);
	r->mr = host_reg(&r->h, r->mem, SLOTS * SLOT);
	link_srq = r->srq = ibv_create_srq(r->h.pd, &init);
	REQUIRE(r->srq);
	for (unsigned i = 0; i < SLOTS; i++)
		post(r, i);
	arm(r);
	for (uint64_t i = 0; i < arg.senders; i++)
		link_open(&r->link[i], &r->h, r->fd[i], NULL);
}

static void end_all(struct receiver *r, pthread_t listens)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_async_event ev;

	for (uint64_t i = 0; i < arg.senders; i++) {
		REQUIRE(ibv_modify_qp(r->link[i].qp, &attr, IBV_QP_STATE) == 0);
		host_say(r->fd[i], 0);
	}
	pthread_join(listens, NULL);
	REQUIRE(fcntl(r->h.ctx->async_fd, F_SETFL, O_NONBLOCK) == 0);
	host_sleep(20 * MS);
	while (ibv_get_async_event(r->h.ctx, &ev) == 0) {
		REQUIRE(ev.event_type != IBV_EVENT_QP_LAST_WQE_REACHED);
		ibv_ack_async_event(&ev);
	}
	REQUIRE_EQ(ibv_destroy_srq(r->srq), EBUSY);
	for (uint64_t i = 0; i < arg.senders; i++)
		link_close(&r->link[i]);
	REQUIRE_EQ(ibv_destroy_srq(r->srq), 0);
	host_dereg(r->mr);
	host_close(&r->h);
}

int main(int argc, char **argv)
{
	static struct receiver r = {.lock = PTHREAD_MUTEX_INITIALIZER,
				    .more = PTHREAD_COND_INITIALIZER};
	pthread_t posts[3], listens;

	arg.senders = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	arg.rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	REQUIRE(arg.rounds && arg.senders && arg.senders <= 16);
	host_start();
	for (uint64_t i = 0; i < arg.senders; i++) {
		r.fd[i] = host_fork(sender);
		host_say(r.fd[i], i);
	}
	open_all(&r);
	for (unsigned i = 0; i < ARRAY_SIZE(posts); i++)
		REQUIRE(pthread_create(&posts[i], NULL, poster, &r) == 0);
	REQUIRE(pthread_create(&listens, NULL, listener, &r) == 0);
	receive_all(&r);
	for (uint64_t i = 0; i < arg.senders; i++)
		host_hear(r.fd[i]);
	pthread_mutex_lock(&r.lock);
	r.ends = true;
	pthread_cond_broadcast(&r.more);
	pthread_mutex_unlock(&r.lock);
	for (unsigned i = 0; i < ARRAY_SIZE(posts); i++)
		pthread_join(posts[i], NULL);
	end_all(&r, listens);
	REQUIRE(r.limits > 0);
	printf("%u times few were left\n", r.limits);
	host_join();
	return 0;
}
