/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* board.h: the file of notes, in a child. */
#ifndef NOPIN_OS_BOARD_H
#define NOPIN_OS_BOARD_H

/** board_in_child() - Forget what was the parent's. Context: fork_forget_parent(), before
 * anything else of os/ runs in a child. */
void board_in_child(void);

#endif
