/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mapping.c: reads /proc/self/maps and smaps: which mappings there are. */
#include "os/mapping.h"
#include "os/file.h"
#include "os/sys_file.h"

#include <stdlib.h>
#include <string.h>

int mapping_first(struct mapping_scan *s, const char *path, struct mapping *map)
{
	memset(s, 0, sizeof(*s));
	s->fd = file_borrow(path);
	if (s->fd < 0)
		return s->fd;
	s->smaps = strstr(path, "smaps") != NULL;
	if (mapping_next(s, map))
		return 0;
	mapping_end(s);
	return -ENOENT;
}

void mapping_end(struct mapping_scan *s)
{
	file_return(s->fd);
	s->fd = -1;
}

/* Return: the next line, without its end, or NULL. Very long ones are cut. */
static char *scan_line(struct mapping_scan *s)
{
	for (;;) {
		char *line = s->buf + s->at, *nl;
		size_t left = s->have - s->at;
		ssize_t n;

		nl = memchr(line, '\n', left);
		if (!nl && left == sizeof(s->buf) - 1)
			nl = line + left - 1;
		if (nl) {
			*nl = 0;
			s->at += (size_t)(nl - line) + 1;
			return line;
		}
		memmove(s->buf, line, left);
		s->at = 0;
		s->have = left;
		n = sys_pread(s->fd, s->buf + left, sizeof(s->buf) - 1 - left,
			      s->pos);
		if (n <= 0)
			return NULL;
		s->pos += (uint64_t)n;
		s->have += (size_t)n;
	}
}

static bool has_flag(const char *flags, const char *two)
{
	const char *p = flags;

	while ((p = strstr(p, two)) != NULL) {
		if (p[-1] == ' ' && (p[2] == ' ' || p[2] == 0))
			return true;
		p += 2;
	}
	return false;
}

static void map_flags(struct mapping *map, const char *line)
{
	map->uffd = has_flag(line, "um") || has_flag(line, "uw") ||
		    has_flag(line, "ui");
	map->huge = has_flag(line, "ht");
	map->locked = has_flag(line, "lo");
	map->device = has_flag(line, "io") || has_flag(line, "pf");
}

/* A number that @end must follow. Return: what is behind it, or NULL. */
static const char *map_number(const char *at, int base, char end, uint64_t *out)
{
	char *stop;

	if (!at)
		return NULL;
	*out = strtoull(at, &stop, base);
	return stop != at && *stop == end ? stop + 1 : NULL;
}

/* "start-end rwxp offset major:minor inode   name" */
static bool map_line(struct mapping *map, const char *line)
{
	uint64_t start, end, offset, major, minor, inode;
	const char *perm, *at;

	at = map_number(line, 16, '-', &start);
	perm = map_number(at, 16, ' ', &end);
	if (!perm || strlen(perm) < 5)
		return false;
	at = map_number(perm + 5, 16, ' ', &offset);
	at = map_number(at, 16, ':', &major);
	at = map_number(at, 16, ' ', &minor);
	if (!at)
		return false;
	inode = strtoull(at, NULL, 10);
	*map = (struct mapping){.range = {start, end}};
	map->read = perm[0] == 'r';
	map->write = perm[1] == 'w';
	map->anon = inode == 0 && perm[3] == 'p';
	return true;
}

bool mapping_next(struct mapping_scan *s, struct mapping *map)
{
	bool found = false;
	char *line;

	while ((line = scan_line(s)) != NULL) {
		if (!found) {
			found = map_line(map, line);
			if (found && !s->smaps)
				return true;
		} else if (strncmp(line, "Swap:", 5) == 0) {
			map->swapped = strtoull(line + 5, NULL, 10) != 0;
		} else if (strncmp(line, "THPeligible:", 12) == 0) {
			map->thp = strtoul(line + 12, NULL, 10) != 0;
		} else if (strncmp(line, "VmFlags:", 8) == 0) {
			map_flags(map, line + 7);
			return true;
		}
	}
	return found && !s->smaps;
}
