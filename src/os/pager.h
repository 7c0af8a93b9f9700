/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pager.h: the threads that wait for pages. */
#ifndef NOPIN_OS_PAGER_H
#define NOPIN_OS_PAGER_H

struct pagers;

int pagers_open(struct pagers **out, unsigned max);
void pagers_close(struct pagers *pg);

/** pagers_fd() - Return the descriptor that is readable while answers wait. */
int pagers_fd(const struct pagers *pg);

/**
 * pagers_quiet() - Let pagers_fd() be readable no more if nothing waits: it may
 * have become so for answers that were reaped before.
 */
void pagers_quiet(struct pagers *pg);

#endif
