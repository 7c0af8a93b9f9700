/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* event_counter.c: counters that peers raise, and threads that wait for a value.
 *
 * Theory of operation. The engine stores the value to the word, then takes the
 * counter's lock and wakes whose value that reaches; a waiter takes the lock and
 * looks at the word, then joins the list: so one of the two sees the other. Each
 * has an event of its own, so that nobody is woken for nothing or takes another's.
 * A thread that waits on the sockets (NIC_WAIT_BLOCK) runs the engine itself, as in
 * nic_channel_get(): its notification costs one wake-up. Others (NIC_WAIT_FUTEX,
 * threads of handlers) do so only while no thread of the program polls or blocks, or
 * each packet would wake all of them; else they sleep on their event alone.
 *
 * Any thread in here is on the list of users while it is: nic_counter_free() waits
 * for the last of them.
 */
#include "nic/event_counter.h"
#include "base/check.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/timerq.h"
#include "mem/eventcount.h"
#include "nic/attend.h"
#include "nic/counter.h"
#include "nic/device.h"
#include "nic/lock.h"
#include "nic/peers.h"
#include "nic/progress.h"
#include "nic/qp.h"
#include "os/run.h"
#include "os/wait.h"
#include "wire/ext.h"
#include "xport/control.h"
#include "xport/dialect.h"
#include "xport/open.h"
#include "xport/peer.h"
#include "xport/qp.h"

#include <errno.h>
#include <pthread.h>

void nic_counter_raise(struct nic_counter *c)
{
	struct nic *nic = c->nic;

	nic_lock(nic);
	counter_raise(c);
	nic_unlock(nic);
}

/* --- users ----------------------------------------------------------------- */

static void event_counter_enter(struct nic_counter *c, struct counter_user *u,
				bool shy, int fd)
{
	*u = (struct counter_user){.counter = c,
				   .thread = os_self(),
				   .target = UINT64_MAX,
				   .fd = fd,
				   .shy = shy};
	pthread_mutex_lock(&c->lock);
	list_add_tail(&c->users, &u->link);
	pthread_mutex_unlock(&c->lock);
}

static void event_counter_leave(struct nic_counter *c, struct counter_user *u)
{
	pthread_mutex_lock(&c->lock);
	list_del(&u->link);
	if (u->fd >= 0 && c->spare < 0) {
		c->spare = u->fd;
		u->fd = -1;
	}
	pthread_cond_broadcast(&c->left);
	pthread_mutex_unlock(&c->lock);
	if (u->fd >= 0)
		os_event_close(u->fd);
}

/* Return: 0 or why there is none. */
static int descriptor(struct nic_counter *c, struct counter_user *u)
{
	int fd;

	if (u->fd >= 0)
		return 0;
	pthread_mutex_lock(&c->lock);
	fd = c->spare;
	c->spare = -1;
	pthread_mutex_unlock(&c->lock);
	if (fd < 0)
		fd = os_event_own();
	pthread_mutex_lock(&c->lock);
	u->fd = fd;
	pthread_mutex_unlock(&c->lock);
	return MIN(fd, 0);
}

/* From now on the user is woken when the value is @target. false: it need not
 * wait. */
static bool aim(struct nic_counter *c, struct counter_user *u, uint64_t target)
{
	bool waits;

	pthread_mutex_lock(&c->lock);
	waits = !c->gone && counter_value(c) < target;
	u->woken = 0;
	u->target = waits ? target : UINT64_MAX;
	if (u->set)
		os_event_clear(u->fd);
	u->set = false;
	pthread_mutex_unlock(&c->lock);
	return waits;
}

static int spin(struct nic_counter *c, uint64_t target, uint64_t until_ns)
{
	while (counter_value(c) < target) {
		if (__atomic_load_n(&c->gone, __ATOMIC_RELAXED))
			return -ECANCELED;
		if (os_now(c->nic->os) >= until_ns)
			return -ETIMEDOUT;
		attend_poll(c->nic);
		os_relax();
	}
	return 0;
}

static int sleep_until(struct nic_counter *c, struct counter_user *u,
		       uint64_t target, uint64_t until_ns)
{
	struct os_signals sig = {.blocked = false};
	int err = 0;
	struct nic *nic;

	if (!aim(c, u, target))
		return counter_value(c) >= target ? 0 : -ECANCELED;
	nic = c->nic; /* until we leave */
	while (!err && !__atomic_load_n(&u->woken, __ATOMIC_ACQUIRE)) {
		if (os_now(nic->os) >= until_ns)
			err = -ETIMEDOUT;
		else if (u->shy && progress_attended(nic))
			err = attend_doze(nic, u->fd, until_ns, &sig);
		else
			err = attend_block(nic, u->fd, &u->woken, until_ns,
					   &sig);
	}
	aim(c, u, 0);
	os_signals_restore(&sig);
	if (counter_value(c) >= target)
		return 0;
	return __atomic_load_n(&c->gone, __ATOMIC_RELAXED) ? -ECANCELED : err;
}

static int wait_as(struct nic_counter *c, struct counter_user *u,
		   uint64_t target, uint64_t until_ns, enum nic_wait how)
{
	int state, err = 0;

	if (counter_value(c) >= target)
		return 0;
	if (how == NIC_WAIT_SPIN)
		return spin(c, target, until_ns);
	err = descriptor(c, u);
	if (err)
		return err;
	/* or the list of users would name a thread that is no more */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	err = sleep_until(c, u, target, until_ns);
	pthread_setcancelstate(state, NULL);
	return err;
}

int nic_counter_wait(struct nic_counter *c, uint64_t target,
		     uint64_t timeout_ns, enum nic_wait how)
{
	struct counter_user u;
	uint64_t now;
	int err;

	if (nic_child(c->nic))
		return -ENODEV;
	if ((unsigned)how >= NIC_WAIT_NUM)
		return -EINVAL;
	now = os_now(c->nic->os);
	event_counter_enter(c, &u, how == NIC_WAIT_FUTEX, -1);
	err = wait_as(c, &u, target,
		      timeout_ns < TIME_NEVER - now ? now + timeout_ns
						    : TIME_NEVER,
		      how);
	event_counter_leave(c, &u);
	return err;
}

/* --- handlers -------------------------------------------------------------- */

/* May the handler be called? false: nobody is to wait for it. */
static bool handle(struct nic_counter *c, struct counter_user *u, bool begins)
{
	bool ok;

	pthread_mutex_lock(&c->lock);
	ok = !c->gone;
	u->handling = begins && ok;
	pthread_mutex_unlock(&c->lock);
	return ok;
}

static int run_user(struct nic_counter *c, struct counter_user *u,
		    nic_counter_fn handler, void *arg)
{
	uint64_t seen = 0;
	int err = 0;

	while (!err) {
		err = wait_as(c, u, seen + 1, TIME_NEVER, NIC_WAIT_BLOCK);
		if (err || !handle(c, u, true))
			break;
		seen = counter_value(c);
		err = handler(arg, seen) ? 1 : 0;
		/* the NIC may be gone by now */
		if (!handle(c, u, false) && !err)
			err = -ECANCELED;
	}
	return MIN(err, 0);
}

static void leave_run(void *arg)
{
	struct counter_user *u = arg;

	event_counter_leave(u->counter, u);
}

/* @fd: to be woken by, or -1: not made yet */
static int event_counter_run(struct nic_counter *c, nic_counter_fn handler,
			     void *arg, bool shy, int fd)
{
	struct counter_user u;
	int err;

	event_counter_enter(c, &u, shy, fd);
	/* the handler may end the thread, or be cancelled */
	pthread_cleanup_push(leave_run, &u);
	err = run_user(c, &u, handler, arg);
	pthread_cleanup_pop(1);
	return err;
}

int nic_counter_run(struct nic_counter *c, nic_counter_fn handler, void *arg)
{
	if (nic_child(c->nic))
		return -ENODEV;
	return event_counter_run(c, handler, arg, false, -1);
}

static void handler_thread(void *arg)
{
	struct nic_counter *c = arg;

	event_counter_run(c, c->handler, c->arg, true, c->handler_fd);
}

/* --- life ------------------------------------------------------------------ */

static int counter_init(struct nic_counter *c, struct nic *nic, uint32_t pd)
{
	int err;

	c->nic = nic;
	c->spare = c->fd = -1;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->left, NULL);
	list_init(&c->users);
	nic_lock(nic);
	err = eventcount_init(nic->mem, &c->ec, pd, &c->word);
	nic_unlock(nic);
	return err;
}

/* The thread has nobody to tell that there is no descriptor. */
static int start_handler(struct nic_counter *c, nic_counter_fn handler,
			 void *arg)
{
	int err;

	c->handler_fd = os_event_own();
	if (c->handler_fd < 0)
		return c->handler_fd;
	c->handler = handler;
	c->arg = arg;
	err = os_thread_start(c->nic->os, &c->thread, "nopin-handler",
			      handler_thread, c);
	if (err)
		os_event_close(c->handler_fd);
	return err;
}

int nic_counter_create(struct nic *nic, uint32_t pd, nic_counter_fn handler,
		       void *arg, struct nic_counter **out)
{
	struct nic_counter *c;
	int err;

	if (nic_child(nic))
		return -ENODEV;
	c = heap_alloc(sizeof(*c));
	if (!c)
		return -ENOMEM;
	err = counter_init(c, nic, pd);
	if (err) {
		heap_free(c);
		return err;
	}
	err = handler ? start_handler(c, handler, arg) : 0;
	if (err) {
		nic_counter_free(c);
		return err;
	}
	*out = c;
	return 0;
}

int nic_counter_reserve(struct nic_counter *c)
{
	struct counter_user u = {.fd = -1};
	int err;

	if (nic_child(c->nic))
		return -ENODEV;
	err = descriptor(c, &u);
	pthread_mutex_lock(&c->lock);
	c->spare = u.fd;
	pthread_mutex_unlock(&c->lock);
	return err;
}

static bool event_counter_is_user(struct nic_counter *c)
{
	bool found = false;

	pthread_mutex_lock(&c->lock);
	list_for_each(l, &c->users)
		found |= list_entry(l, struct counter_user, link)->thread ==
			 os_self();
	pthread_mutex_unlock(&c->lock);
	return found;
}

/* From now on no peer raises it, and no thread is to wait. */
static void revoke(struct nic_counter *c)
{
	nic_lock(c->nic);
	eventcount_fini(c->nic->mem, &c->ec);
	nic_unlock(c->nic);
	pthread_mutex_lock(&c->lock);
	__atomic_store_n(&c->gone, true, __ATOMIC_RELAXED);
	counter_wake(c, UINT64_MAX);
	pthread_mutex_unlock(&c->lock);
}

/* Lock held. */
static bool anybody(const struct nic_counter *c, bool also_handlers)
{
	list_for_each(l, &c->users)
		if (also_handlers ||
		    !list_entry(l, struct counter_user, link)->handling)
			return true;
	return false;
}

static void wait_left(struct nic_counter *c, bool also_handlers)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&c->lock);
	while (anybody(c, also_handlers))
		pthread_cond_wait(&c->left, &c->lock);
	pthread_mutex_unlock(&c->lock);
	pthread_setcancelstate(state, NULL);
}

void nic_counter_close(struct nic_counter *c)
{
	if (!c->nic || nic_child(c->nic))
		return;
	revoke(c);
	wait_left(c, false);
	c->nic = NULL;
}

int nic_counter_free(struct nic_counter *c)
{
	if (!c->gone && nic_child(c->nic))
		return -ENODEV;
	if (event_counter_is_user(c))
		return -EDEADLK;
	nic_counter_close(c);
	wait_left(c, true);
	if (c->thread)
		os_thread_join(c->thread);
	if (c->spare >= 0)
		os_event_close(c->spare);
	if (c->fd >= 0)
		os_event_close(c->fd);
	pthread_cond_destroy(&c->left);
	pthread_mutex_destroy(&c->lock);
	heap_free(c);
	return 0;
}

/* --- looking --------------------------------------------------------------- */

uint32_t nic_counter_id(const struct nic_counter *c)
{
	return c->ec.id;
}

const uint64_t *nic_counter_word(const struct nic_counter *c)
{
	return &c->word;
}

int nic_counter_fd(struct nic_counter *c, int *fd)
{
	int got;

	if (nic_child(c->nic))
		return -ENODEV;
	pthread_mutex_lock(&c->lock);
	if (c->fd < 0)
		c->fd = os_event_open();
	got = c->fd;
	if (got >= 0 && counter_value(c) != c->polled)
		os_event_set(got);
	pthread_mutex_unlock(&c->lock);
	if (got < 0)
		return got;
	*fd = got;
	return 0;
}

int nic_counter_poll(struct nic_counter *c, uint64_t *value)
{
	if (nic_child(c->nic))
		return -ENODEV;
	attend_poll(c->nic);
	pthread_mutex_lock(&c->lock);
	if (c->fd >= 0)
		os_event_clear(c->fd);
	*value = c->polled = counter_value(c);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

/* --- QPs ------------------------------------------------------------------- */

int nic_qp_set_counting(struct nic_qp *qp, bool counts)
{
	if (nic_child(qp->nic))
		return -ENODEV;
	if (qp->init.ud)
		return -EOPNOTSUPP;
	nic_lock(qp->nic);
	qp->qp.counts = counts;
	nic_unlock(qp->nic);
	return 0;
}

static int peer_notifies(struct nic *nic, struct qp *qp)
{
	struct peer *p = qp->peer;

	if (qp_open(qp) && p->nonce)
		return p->features & HELLO_NOTIFY ? 0 : -EOPNOTSUPP;
	if (qp_open(qp))
		return -EAGAIN;
	if (p->kind == PEER_NOPIN || p->hello.denied)
		return open_insist(qp) ? -EAGAIN : -EOPNOTSUPP;
	peers_insist(nic, p);
	return -EAGAIN;
}

int nic_qp_notifies(struct nic_qp *qp)
{
	int err;

	if (nic_child(qp->nic))
		return -ENODEV;
	if (qp->init.ud)
		return -EOPNOTSUPP;
	nic_lock(qp->nic);
	err = qp->qp.peer ? peer_notifies(qp->nic, &qp->qp) : -EINVAL;
	nic_unlock(qp->nic);
	return err;
}
