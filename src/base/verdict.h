/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verdict.h: what became of a request that a peer or the application made.
 * Never an errno: an errno is a failure of ours or of a call to us.
 */
#ifndef NOPIN_BASE_VERDICT_H
#define NOPIN_BASE_VERDICT_H

enum verdict {
	V_OK,
	V_WAIT, /* a page is missing; a ticket is out; ask again when woken */
	V_PROT, /* key, PD, access right, bounds, or the host said EFAULT */
	V_LENGTH, /* longer or shorter than the operation allows */
	V_INVALID, /* malformed or out of place, e.g. misaligned atomic */
	V_NO_RESOURCE, /* a bound was reached (too many READs outstanding) */
	V_NUM
};

#endif
