/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_resume.h: requesters that hold are told to go on. */
#ifndef NOPIN_XPORT_FAULT_RESUME_H
#define NOPIN_XPORT_FAULT_RESUME_H

#include <stdint.h>

struct qp;

/** resume_say() - Tell a requester that holds to go on; again, if what it held does not
 * come. */
void resume_say(struct qp *qp);

/** resume_heard() - Note that it came. */
void resume_heard(struct qp *qp);

/** resume_timeout() - Say it again, if that is due. */
void resume_timeout(struct qp *qp);

#endif
