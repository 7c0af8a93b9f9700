/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_resume.h: who holds is told to go on. */
#ifndef NOPIN_XPORT_FAULT_RESUME_H
#define NOPIN_XPORT_FAULT_RESUME_H

#include "base/base.h"

struct qp;

/** resume_say() - Who holds may go on: said again if what was held does not come. */
void resume_say(struct qp *qp, uint64_t now_ns);

/** resume_heard() - It came. */
void resume_heard(struct qp *qp);
void resume_timeout(struct qp *qp, uint64_t now_ns);

#endif
