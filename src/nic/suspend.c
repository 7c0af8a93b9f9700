/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* suspend.c: suspending regions, moving what is below them, and resuming them: for
 * the API edge, and for nopin(1) from below an unmodified program. What happens to
 * work meanwhile is in mem/suspend.c and xport/hold.c, how memory is moved in
 * os/move.c.
 */
#include "mem/suspend.h"
#include "base/account.h"
#include "base/check.h"
#include "base/list.h"
#include "base/page.h"
#include "base/range.h"
#include "mem/account.h"
#include "mem/mr.h"
#include "mem/spt.h"
#include "nic/device.h"
#include "nic/lock.h"
#include "nic/memory.h"
#include "nic/progress.h"
#include "nic/qp.h"
#include "nic/reg.h"
#include "nic/suspend.h"
#include "nic/suspension.h"
#include "nic/text.h"
#include "os/pages.h"
#include "os/run.h"
#include "xport/control.h"
#include "xport/qp.h"
#include "xport/waits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Lock held. Until moves that were planned before have ended. */
static int wait_moves(struct nic *nic, uint32_t key)
{
	struct mr_suspension s;
	int err;

	while (!(err = mr_suspension(nic->mem, key, &s)) && s.suspended &&
	       s.moving)
		nic_wait_idle(nic);
	return err;
}

int nic_mr_suspend(struct nic *nic, uint32_t key, uint64_t expected_ns)
{
	int err;

	if (nic_child(nic))
		return -ENODEV;
	nic_lock(nic);
	err = mr_suspend(nic->mem, key, expected_ns, nic->x.now);
	if (!err)
		err = wait_moves(nic, key);
	nic_unlock(nic);
	return err;
}

/* Before anything is locked or looked at: may it be updated? */
static int update_check(struct nic *nic, uint32_t key, uint64_t length,
			struct mr_attr *attr)
{
	struct mr_suspension s;
	int err;

	nic_lock(nic);
	err = mr_suspension(nic->mem, key, &s);
	if (!err)
		err = mr_query(nic->mem, key, attr);
	nic_unlock(nic);
	if (!err && (!s.suspended || length != attr->length))
		err = -EINVAL;
	return err;
}

int nic_mr_update(struct nic *nic, uint32_t key, uint64_t addr, uint64_t length)
{
	struct mr_attr before, after;
	int err;

	if (nic_child(nic))
		return -ENODEV;
	if (range_wraps(addr, length))
		return -EINVAL;
	err = update_check(nic, key, length, &before);
	if (!err)
		err = os_mapped(nic->os, addr, length);
	if (err)
		return err;
	after = before;
	after.addr = addr;
	err = reg_enter(nic, &after);
	if (err)
		return err;
	nic_lock(nic);
	err = mr_update(nic->mem, key, addr, length);
	nic_unlock(nic);
	reg_leave(nic, err ? &after : &before);
	return err;
}

int nic_mr_resume(struct nic *nic, uint32_t key)
{
	int err;

	if (nic_child(nic))
		return -ENODEV;
	nic_lock(nic);
	err = mr_resume(nic->mem, key, nic->x.now);
	nic_wake_idle(nic); /* threads in wait_moves() */
	nic_unlock(nic);
	return err;
}

static bool asked(struct nic *nic, const struct qp *qp, uint32_t key)
{
	const struct resp *r = &qp->resp;
	uint64_t ns;

	return r->hold.asked &&
	       (waiter_suspended(nic->mem, &r->wait, &ns) == key ||
		waiter_suspended(nic->mem, &r->replay.wait, &ns) == key);
}

/* Lock held. */
static void ask_qps(struct nic *nic, uint32_t key, uint32_t pd,
		    struct nic_suspension *out)
{
	out->limit_ns = UINT64_MAX;
	list_for_each(l, &nic->qps.all) {
		const struct qp *qp = &list_entry(l, struct nic_qp, all)->qp;

		if (!qp_receives(qp) || !qp->connected ||
		    (qp->cfg.pd != pd && qp->cfg.receives->pd != pd))
			continue;
		out->limit_ns = MIN(out->limit_ns, qp_patience_ns(qp));
		out->held += asked(nic, qp, key);
	}
}

int nic_mr_suspension(struct nic *nic, uint32_t key, struct nic_suspension *out)
{
	struct nic_suspension n = {.held = 0};
	struct mr_attr attr = {.pd = 0};
	struct mr_suspension s;
	int err;

	if (nic_child(nic))
		return -ENODEV;
	nic_lock(nic);
	err = mr_suspension(nic->mem, key, &s);
	if (!err)
		err = mr_query(nic->mem, key, &attr);
	if (!err)
		ask_qps(nic, key, attr.pd, &n);
	nic_unlock(nic);
	if (err)
		return err;
	n.suspended = s.suspended;
	n.since_ns = s.suspended ? os_now(nic->os) - s.since_ns : 0;
	n.expected_ns = s.expected_ns;
	n.pause_ns = s.pause_ns;
	*out = n;
	return 0;
}

/* --- from below --------------------------------------------------------------- */

/** struct regions_done - What became of the regions that were named. */
struct regions_done {
	unsigned num;
	uint64_t limit_ns, pause_ns;
};

typedef int (*region_fn)(struct nic *nic, uint32_t key, uint64_t arg);

static int resume_one(struct nic *nic, uint32_t key, uint64_t arg)
{
	(void)arg;
	return nic_mr_resume(nic, key);
}

static int do_one(struct nic *nic, uint32_t key, region_fn fn, uint64_t arg,
		  struct regions_done *d)
{
	struct nic_suspension s;
	int err = fn(nic, key, arg);

	if (!err)
		err = nic_mr_suspension(nic, key, &s);
	if (err)
		return err;
	d->num++;
	d->limit_ns = MIN(d->limit_ns, s.limit_ns);
	d->pause_ns = MAX(d->pause_ns, s.pause_ns);
	return 0;
}

/* Those for which it has no meaning (suspended already, or not, or the whole
 * address space) are left out. */
static int do_all(struct nic *nic, region_fn fn, uint64_t arg,
		  struct regions_done *d)
{
	struct account account;
	struct mr_attr attr;
	uint32_t at = 0, key;
	bool more;
	int err;

	for (;;) {
		nic_lock(nic);
		more = mr_account_next(nic->mem, &at, &key, &attr, &account);
		nic_unlock(nic);
		if (!more)
			return 0;
		if (!key)
			continue;
		err = do_one(nic, key, fn, arg, d);
		if (err && err != -EINVAL && err != -EOPNOTSUPP &&
		    err != -ENOENT)
			return err;
	}
}

/* @einval: what -EINVAL means. */
static const char *why(int err, const char *einval)
{
	switch (-err) {
	case ENOENT:
		return "no region has this key";
	case EINVAL:
		return einval;
	case EBUSY:
		return "its suspension has not begun yet";
	case EFAULT:
		return "a part of it is not mapped";
	case EPERM:
		return "the kernel lets this program not stop those who touch "
		       "the memory meanwhile: see vm.unprivileged_userfaultfd";
	case EOPNOTSUPP:
		return "only private anonymous memory in small pages that is "
		       "not locked can be moved, not the whole address space";
	case ENOTDIR:
		return "there is no such directory";
	case ENODEV:
		return "there is no such node";
	case EEXIST:
		return "the file exists";
	case ENOSPC:
		return "there is no room for the file";
	case ENOMEM:
		return "no memory";
	default:
		return strerrordesc_np(-err);
	}
}

static void suspend_say(struct ctl_answer *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void suspend_say(struct ctl_answer *a, const char *fmt, ...)
{
	enum { LINE = 256 };
	va_list ap;

	a->text = malloc(LINE);
	if (!a->text)
		return;
	va_start(ap, fmt);
	a->len = (size_t)vsnprintf(a->text, LINE, fmt, ap);
	va_end(ap);
	a->len = MIN(a->len, LINE - 1);
}

static bool number(const char *word, int base, uint64_t max, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(word, &end, base);
	return word[0] != '-' && end != word && !*end && !errno && *out <= max;
}

/* "all", or a key. @key 0: all. */
static bool which(const char *word, uint32_t *key, struct ctl_answer *a)
{
	uint64_t n = 0;

	if (strcmp(word, "all") != 0 &&
	    (!number(word, 0, UINT32_MAX, &n) || n == 0)) {
		snprintf(a->error, sizeof(a->error), "'%.40s' is no key", word);
		return false;
	}
	*key = (uint32_t)n;
	return true;
}

/** struct region_order - @einval: what -EINVAL of @fn means. */
struct region_order {
	region_fn fn;
	const char *einval;
};

static const struct region_order order_suspend = {nic_mr_suspend,
						  "it is suspended already"};
static const struct region_order order_resume = {resume_one,
						 "it is not suspended"};

static bool regions_do(struct nic *nic, const char *word,
		       const struct region_order *o, uint64_t arg,
		       struct regions_done *d, struct ctl_answer *a)
{
	uint32_t key;
	int err;

	*d = (struct regions_done){.limit_ns = UINT64_MAX};
	if (!which(word, &key, a))
		return false;
	err = key ? do_one(nic, key, o->fn, arg, d)
		  : do_all(nic, o->fn, arg, d);
	if (err)
		snprintf(a->error, sizeof(a->error), "%s", why(err, o->einval));
	return !err;
}

void ctl_suspend(struct nic *nic, int argc, char **argv, struct ctl_answer *a)
{
	enum { NS_PER_MS = 1000 * 1000 };
	struct regions_done d;
	uint64_t ms = 0;

	if (argc < 2 || (argc > 2 && !number(argv[2], 10, UINT32_MAX, &ms))) {
		snprintf(a->error, sizeof(a->error),
			 "suspend: of which region, for how many ms?");
		return;
	}
	if (!regions_do(nic, argv[1], &order_suspend, ms * NS_PER_MS, &d, a))
		return;
	if (d.limit_ns == UINT64_MAX)
		suspend_say(a, "suspended: %u\nlimit_ms: none\n", d.num);
	else
		suspend_say(a, "suspended: %u\nlimit_ms: %" PRIu64 "\n", d.num,
			    d.limit_ns / NS_PER_MS);
}

void ctl_resume(struct nic *nic, int argc, char **argv, struct ctl_answer *a)
{
	struct regions_done d;

	if (argc < 2) {
		snprintf(a->error, sizeof(a->error), "resume: which region?");
		return;
	}
	if (regions_do(nic, argv[1], &order_resume, 0, &d, a))
		suspend_say(a, "resumed: %u\npause_us: %" PRIu64 "\n", d.num,
			    d.pause_ns / 1000);
}

static bool parse_move(int argc, char **argv, struct os_move_req *req)
{
	uint64_t n;

	if (argc == 3 && !strcmp(argv[2], "recreate")) {
		req->to = OS_MOVE_RECREATE;
	} else if (argc == 4 && !strcmp(argv[2], "file") && argv[3][0] == '/') {
		req->to = OS_MOVE_TO_FILE;
		req->path = argv[3];
	} else if (argc == 4 && !strcmp(argv[2], "node") &&
		   number(argv[3], 10, INT32_MAX, &n)) {
		req->to = OS_MOVE_TO_NODE;
		req->node = (unsigned)n;
	} else {
		return false;
	}
	return true;
}

/* Suspended by us or before. @took_ns: the move alone. */
static int move_region(struct nic *nic, uint32_t key, struct os_move_req *req,
		       uint64_t *copied, uint64_t *took_ns)
{
	uint64_t since;
	struct mr_attr attr;
	int err = nic_mr_query(nic, key, &attr);

	if (err)
		return err;
	req->addr = attr.addr;
	req->len = attr.length;
	since = os_now(nic->os);
	err = os_move(nic->os, req, copied);
	*took_ns = os_now(nic->os) - since;
	if (err) /* -ENOENT is for keys */
		return err == -ENOENT ? -ENOTDIR : err;
	return 0;
}

/* Others that have these pages are to look again, too: after the pause, for a wrong
 * entry is no wrong data. */
static void others_look_again(struct nic *nic, const struct os_move_req *req)
{
	enum { AT_ONCE = 1024 }; /* as long as others may wait for the lock */
	const uint64_t end = page_of(req->addr) +
			     pages_spanned(req->addr, req->len);

	for (uint64_t vpn = page_of(req->addr); vpn < end; vpn += AT_ONCE) {
		nic_lock(nic);
		(void)spt_unmap(nic->mem, vpn,
				MIN(end - vpn, (uint64_t)AT_ONCE));
		nic_unlock(nic);
	}
}

static int move_suspended(struct nic *nic, uint32_t key,
			  struct os_move_req *req, struct ctl_answer *a)
{
	enum { EXPECTED_NS = 10 * 1000 * 1000 };
	struct nic_suspension s = {.suspended = false};
	uint64_t copied = 0, took_ns = 0;
	int err = nic_mr_suspension(nic, key, &s), resumed;
	const bool before = s.suspended;

	if (!err && !before)
		err = nic_mr_suspend(nic, key, EXPECTED_NS);
	if (err)
		return err;
	err = move_region(nic, key, req, &copied, &took_ns);
	if (!before) {
		resumed = nic_mr_resume(nic, key);
		err = err ? err : resumed;
	}
	if (!err)
		others_look_again(nic, req);
	if (!err)
		err = nic_mr_suspension(nic, key, &s);
	if (!err)
		suspend_say(a,
			    "moved: %" PRIu64 "\ncopied: %" PRIu64
			    "\nmove_us: %" PRIu64 "\npause_us: %" PRIu64 "\n",
			    req->len, copied, took_ns / 1000,
			    before ? 0 : s.pause_ns / 1000);
	return err;
}

void ctl_move(struct nic *nic, int argc, char **argv, struct ctl_answer *a)
{
	struct os_move_req req = {.path = NULL};
	uint32_t key;
	int err;

	if (argc < 3 || !parse_move(argc, argv, &req)) {
		snprintf(a->error, sizeof(a->error),
			 "move: which region, and to what: recreate, file "
			 "/PATH, node N?");
		return;
	}
	if (!which(argv[1], &key, a))
		return;
	err = key ? move_suspended(nic, key, &req, a) : -ENOENT;
	if (err)
		snprintf(a->error, sizeof(a->error), "%s",
			 why(err, "others suspend or resume it"));
}
