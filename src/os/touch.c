/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* touch.c: touch a page from user mode and survive it (design D8). Memory
 * under a user-mode-only userfaultfd gives EFAULT to the kernel and yet is
 * legal to load: only a real load can tell. populate.c comes here when the
 * kernel has said no although the mapping allows the access.
 *
 * Theory of operation
 *
 * The touch is two instructions of our own, at known addresses; a handler for
 * SIGSEGV and SIGBUS that finds one of them interrupted makes the touch return
 * -EFAULT. Every other signal goes to the disposition that was there before.
 *
 * The handler is installed when a touch is first needed and stays. If the
 * program installs its own later, the next touch puts ours before it again.
 * That program's handler may itself pass signals on to the one it replaced,
 * which is ours: so each installation uses another entry function with a
 * predecessor of its own, and no circle can form. When the entries are used
 * up, touches are not made any more and the kernel's verdict stands.
 */
#include "os/touch.h"
#include "os/sys.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

enum { TOUCH_ENTRIES = 8, TOUCH_SIGNALS = 2 };

static const int touch_signals[TOUCH_SIGNALS] = {SIGSEGV, SIGBUS};

/* Leaf functions without a frame: at every address from touch_begin up to
 * touch_fail it is right to go to touch_fail instead.
 */
int nopin_touch_load(uintptr_t addr);
int nopin_touch_store(uintptr_t addr);
extern const char nopin_touch_begin[], nopin_touch_fail[];

#define TOUCH_FUNCTION(name)                                                   \
	".hidden " name "\n.globl " name "\n.type " name ", %function\n" name  \
	":\n"

/* clang-format off */
/* NOLINTBEGIN(hicpp-no-assembler): the point of this file */
#ifndef __x86_64__
#error "touch.c: no guarded load and store for this machine"
#endif
__asm__(".pushsection .text\n.cfi_startproc\n"
	TOUCH_FUNCTION("nopin_touch_begin")
	TOUCH_FUNCTION("nopin_touch_load")
	"movb (%rdi), %al\n"
	"xorl %eax, %eax\n"
	"ret\n"
	TOUCH_FUNCTION("nopin_touch_store")
	"lock orb $0, (%rdi)\n"
	"xorl %eax, %eax\n"
	"ret\n"
	TOUCH_FUNCTION("nopin_touch_fail")
	"movl $-14, %eax\n"
	"ret\n"
	".cfi_endproc\n.popsection\n");
#define TOUCH_PC(uc) ((uc)->uc_mcontext.gregs[REG_RIP])
/* NOLINTEND(hicpp-no-assembler) */
/* clang-format on */

typedef void (*touch_entry_t)(int sig, siginfo_t *info, void *uc);

static const struct sigaction touch_dfl; /* SIG_DFL is 0 */

/* Written once, under touch_lock, before touch_used (release) says so and the
 * entry is installed.
 */
static struct sigaction touch_prev[TOUCH_SIGNALS][TOUCH_ENTRIES];
static unsigned touch_used[TOUCH_SIGNALS];
/* The handler had SA_RESETHAND, and was called. */
static bool touch_reset[TOUCH_SIGNALS][TOUCH_ENTRIES];
static pthread_mutex_t touch_lock = PTHREAD_MUTEX_INITIALIZER;

/* Do what would have happened without us. */
static void touch_default(int sig, const siginfo_t *info, bool ignore)
{
	bool sent = info->si_code <= 0; /* by kill() or the like */

	if (ignore && sent)
		return;
	sigaction(sig, &touch_dfl, NULL);
	/* A fault happens again on return; what was sent, we send again. */
	if (sent)
		(void)sys_call(SYS_rt_tgsigqueueinfo,
			       sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0),
			       sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0), sig,
			       SYS_PTR(info), 0, 0);
}

static void touch_signal(unsigned entry, int sig, siginfo_t *info, void *ctx)
{
	unsigned which = sig == touch_signals[0] ? 0 : 1;
	ucontext_t *uc = ctx;
	uintptr_t pc = (uintptr_t)TOUCH_PC(uc);
	struct sigaction prev;

	if (info->si_code > 0 && pc >= (uintptr_t)nopin_touch_begin &&
	    pc < (uintptr_t)nopin_touch_fail) {
		TOUCH_PC(uc) =
			(__typeof__(TOUCH_PC(uc)))(uintptr_t)nopin_touch_fail;
		return;
	}
	(void)__atomic_load_n(&touch_used[which], __ATOMIC_ACQUIRE);
	prev = touch_prev[which][entry];
	if ((prev.sa_flags & (int)SA_RESETHAND) &&
	    __atomic_exchange_n(&touch_reset[which][entry], true,
				__ATOMIC_RELAXED))
		prev = touch_dfl;
	if (prev.sa_handler == SIG_DFL || prev.sa_handler == SIG_IGN)
		touch_default(sig, info, prev.sa_handler == SIG_IGN);
	else if (prev.sa_flags & SA_SIGINFO)
		prev.sa_sigaction(sig, info, ctx);
	else
		prev.sa_handler(sig);
}

#define TOUCH_ENTRY(n)                                                         \
	static void touch_entry_##n(int sig, siginfo_t *info, void *ctx)       \
	{                                                                      \
		touch_signal(n, sig, info, ctx);                               \
	}

TOUCH_ENTRY(0)
TOUCH_ENTRY(1)
TOUCH_ENTRY(2)
TOUCH_ENTRY(3)
TOUCH_ENTRY(4)
TOUCH_ENTRY(5)
TOUCH_ENTRY(6)
TOUCH_ENTRY(7)

static const touch_entry_t touch_entry[TOUCH_ENTRIES] = {
	touch_entry_0, touch_entry_1, touch_entry_2, touch_entry_3,
	touch_entry_4, touch_entry_5, touch_entry_6, touch_entry_7,
};

static bool touch_is_ours(const struct sigaction *sa)
{
	for (unsigned i = 0; i < TOUCH_ENTRIES; i++)
		if ((sa->sa_flags & SA_SIGINFO) &&
		    sa->sa_sigaction == touch_entry[i])
			return true;
	return false;
}

static bool touch_same(const struct sigaction *a, const struct sigaction *b)
{
	return a->sa_sigaction == b->sa_sigaction && a->sa_flags == b->sa_flags;
}

/* Mask and flags of the predecessor, so that it runs as it expects to. @old: what
 * was there; no longer @before, if the program installed another meanwhile. */
static int touch_install(unsigned which, const struct sigaction *before,
			 struct sigaction *old)
{
	unsigned n = touch_used[which];
	struct sigaction sa = *before;

	if (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN)
		sa.sa_flags = SA_ONSTACK;
	sa.sa_flags = (sa.sa_flags | SA_SIGINFO) & ~(int)SA_RESETHAND;
	sa.sa_sigaction = touch_entry[n];
	touch_prev[which][n] = *before;
	__atomic_store_n(&touch_used[which], n + 1, __ATOMIC_RELEASE);
	return sigaction(touch_signals[which], &sa, old) < 0 ? -EFAULT : 0;
}

/* The program's handler is looked up and replaced in two calls: one that came
 * between them is put behind another entry of ours, or if there is none put back.
 */
static int touch_guard_signal(unsigned which)
{
	struct sigaction before, old;
	bool again = false;
	int ret;

	if (sigaction(touch_signals[which], NULL, &before) < 0)
		return -EFAULT;
	if (touch_is_ours(&before))
		return 0;
	if (touch_used[which] == TOUCH_ENTRIES)
		return -EFAULT;
	do {
		ret = touch_install(which, &before, &old);
		if (ret < 0 || touch_same(&before, &old) ||
		    (again && touch_is_ours(&old)))
			return ret;
		before = old;
		again = true;
	} while (touch_used[which] < TOUCH_ENTRIES);
	(void)sigaction(touch_signals[which], &before, NULL);
	return -EFAULT;
}

static int touch_guard(void)
{
	int ret = 0;

	pthread_mutex_lock(&touch_lock);
	for (unsigned i = 0; i < TOUCH_SIGNALS && ret == 0; i++)
		ret = touch_guard_signal(i);
	pthread_mutex_unlock(&touch_lock);
	return ret;
}

void touch_in_child(void)
{
	touch_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

int touch_page(uint64_t addr, bool write)
{
	int ret = touch_guard();

	if (ret < 0)
		return ret;
	return write ? nopin_touch_store(addr) : nopin_touch_load(addr);
}
