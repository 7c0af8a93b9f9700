/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* file.h: files of /proc and /sys that are read again and again. */
#ifndef NOPIN_OS_FILE_H
#define NOPIN_OS_FILE_H

/**
 * file_borrow() - Open a file of /proc or /sys, or take one that stayed open, to read it
 * with pread(). A program that closes all descriptors may close it and get its number
 * for something else: read() would take what is in there, pread() of a socket or pipe
 * fails.
 * Return: the descriptor, to be handed to file_return(); or -errno.
 */
int file_borrow(const char *path);

/** file_share() - Open as file_borrow() does, for a reader that does not mind that others
 * read it meanwhile. */
int file_share(const char *path);

/** file_return() - Take back @fd, which is of one of these; -errno is left alone. */
void file_return(int fd);

/**
 * files_begin() - Keep open what was borrowed from now on, for the next reader that
 * wants it, until as many files_end(). Context: a thread of the program's, which sees
 * its lowest free numbers taken for a moment.
 */
void files_begin(void);
void files_end(void);

/** files_in_child() - Forget what was the parent's. Context: fork_forget_parent(), before
 * anything else of os/ runs in a child. */
void files_in_child(void);

#endif
