/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sanitized.h: is this built for a sanitizer? Then faults on memory of its own count as
 * those of the pages that a pager was asked for.
 */
#ifndef NOPIN_TESTS_UNIT_SANITIZED_H
#define NOPIN_TESTS_UNIT_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

#endif
