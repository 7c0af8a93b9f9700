/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sync_link.c: homes and their members, owners and their users become acquainted. */
#include "sync.h"

#include <sys/socket.h>

void sync_link_open(struct sync_link *s, const struct host *h, int fd)
{
	s->h = *h;
	s->h.cq = ibv_create_cq(h->ctx, 16, NULL, NULL, 0);
	REQUIRE(s->h.cq);
	link_open(&s->l, &s->h, fd, NULL);
}

void sync_link_close(struct sync_link *s)
{
	REQUIRE(ibv_destroy_qp(s->l.qp) == 0);
	REQUIRE(ibv_destroy_cq(s->h.cq) == 0);
}

static void say_card(int fd, const struct nopin_card *card)
{
	REQUIRE(send(fd, card, sizeof(*card), MSG_NOSIGNAL) == sizeof(*card));
}

static void hear_card(int fd, struct nopin_card *card)
{
	REQUIRE(recv(fd, card, sizeof(*card), MSG_WAITALL) == sizeof(*card));
}

void sync_join(struct nopin_home *home, const struct sync_link *s, int fd)
{
	struct nopin_card theirs, ours;

	hear_card(fd, &theirs);
	REQUIRE(nopin_home_join(home, s->l.qp, &theirs, &ours) == 0);
	say_card(fd, &ours);
}

struct nopin_member *member_open(const struct sync_link *s, int fd)
{
	struct nopin_card mine, home;
	struct nopin_member *m;

	REQUIRE(nopin_member_create(s->l.qp, &m, &mine) == 0);
	say_card(fd, &mine);
	hear_card(fd, &home);
	REQUIRE(nopin_member_start(m, &home) == 0);
	return m;
}

void cache_join(struct nopin_owner *owner, const struct sync_link *s, int fd)
{
	struct nopin_card theirs, ours;

	hear_card(fd, &theirs);
	REQUIRE(nopin_owner_join(owner, s->l.qp, &theirs, &ours) == 0);
	say_card(fd, &ours);
}

struct nopin_cache *cache_open(const struct sync_link *s, int fd,
			       uint64_t block, uint32_t blocks)
{
	const struct nopin_cache_attr attr = {.block = block, .blocks = blocks};
	struct nopin_card mine, owner;
	struct nopin_cache *c;

	REQUIRE(nopin_cache_create(s->l.qp, &attr, &c, &mine) == 0);
	say_card(fd, &mine);
	hear_card(fd, &owner);
	REQUIRE(nopin_cache_start(c, &owner) == 0);
	return c;
}

void order_say(int fd, uint64_t order)
{
	REQUIRE(host_hear(fd) == 0);
	host_say(fd, order);
}

int order_answer(int fd, uint64_t order)
{
	int rc = (int)host_hear(fd);

	host_say(fd, order);
	return rc;
}

uint64_t order_take(int fd)
{
	host_say(fd, 0);
	return host_hear(fd);
}

void order_done(int fd, uint64_t order, int rc)
{
	host_say(fd, (uint64_t)rc);
	REQUIRE(host_hear(fd) == order);
}
