/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wire_test.h: what the tests of wire/ share: cmocka, the files of
 * tests/vectors, and comparing packets field by field.
 */
#ifndef NOPIN_WIRE_TEST_H
#define NOPIN_WIRE_TEST_H

#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/roce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LINE_BYTES = 16384, PKT_BYTES = 8192 };

/* Found from where this was compiled: run the test where it was built. */
static inline FILE *vectors_open(const char *name)
{
	const char *slash = strrchr(__FILE__, '/');
	char path[1024];
	FILE *f;

	assert_non_null(slash);
	snprintf(path, sizeof(path), "%.*s/../../vectors/%s",
		 (int)(slash - __FILE__), __FILE__, name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("cannot open %s", path);
	return f;
}

/* The next line that is neither empty nor a comment. */
static inline bool vectors_next(FILE *f, char line[LINE_BYTES])
{
	while (fgets(line, LINE_BYTES, f)) {
		assert_non_null(strchr(line, '\n'));
		line[strcspn(line, "\n")] = 0;
		if (line[0] && line[0] != '#')
			return true;
	}
	return false;
}

static inline size_t unhex(const char *hex, uint8_t *out, size_t room)
{
	size_t n = strlen(hex) / 2;

	assert_int_equal(strlen(hex) % 2, 0);
	assert_true(n <= room);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(sscanf(hex + 2 * i, "%2hhx", &out[i]), 1);
	return n;
}

#define PKT_NUMBERS(X)                                                         \
	X(op)                                                                  \
	X(opcode)                                                              \
	X(ext)                                                                 \
	X(solicited)                                                           \
	X(ack_req)                                                             \
	X(pad)                                                                 \
	X(syndrome)                                                            \
	X(pkey)                                                                \
	X(qpn)                                                                 \
	X(psn)                                                                 \
	X(aeth_msn)                                                            \
	X(va)                                                                  \
	X(rkey)                                                                \
	X(dma_len)                                                             \
	X(imm)                                                                 \
	X(swap_add)                                                            \
	X(compare)                                                             \
	X(qkey)                                                                \
	X(src_qpn)                                                             \
	X(epoch)                                                               \
	X(my_epoch)                                                            \
	X(open_flags)                                                          \
	X(nonce)                                                               \
	X(accepted)                                                            \
	X(xack_flags)                                                          \
	X(credit)                                                              \
	X(slots)                                                               \
	X(serial)                                                              \
	X(echo)                                                                \
	X(hold_us)                                                             \
	X(placed_to)                                                           \
	X(unanswered)                                                          \
	X(question)                                                            \
	X(answer)                                                              \
	X(sack)                                                                \
	X(version)                                                             \
	X(read_chunk)                                                          \
	X(features)                                                            \
	X(my_nonce)                                                            \
	X(fwd_src.port)                                                        \
	X(fwd_src.scope)                                                       \
	X(fwd_secret)                                                          \
	X(hdr_len)                                                             \
	X(payload_len)

static inline void assert_pkt_equal(const char *name, const struct pkt *a,
				    const struct pkt *b)
{
#define X(field)                                                               \
	if (a->field != b->field)                                              \
		fail_msg("%s: %s: %#llx != %#llx", name, #field,               \
			 (unsigned long long)a->field,                         \
			 (unsigned long long)b->field);
	PKT_NUMBERS(X)
#undef X
	if (!ipaddr_eq(&a->fwd_src.ip, &b->fwd_src.ip) ||
	    !ipaddr_eq(&a->fwd_dst, &b->fwd_dst))
		fail_msg("%s: forwarded addresses differ", name);
}

/** struct vector - A line of packets.txt. */
struct vector {
	char name[64];
	uint8_t hdr[PKT_BYTES];
	size_t hdr_len, total;
	enum counter drop; /* CNT_NUM: none */
	struct pkt pkt;
};

static inline enum counter drop_by_name(const char *reason)
{
	for (int i = 0; i < CNT_NUM; i++)
		if (!strncmp(counter_info[i].name, "drop_", 5) &&
		    !strcmp(counter_info[i].name + 5, reason))
			return (enum counter)i;
	fail_msg("no drop counter %s", reason);
	return CNT_NUM;
}

static inline void vector_field(struct vector *v, const char *key,
				const char *value)
{
	unsigned long long n = strtoull(value, NULL, 0);
	struct pkt *pkt = &v->pkt;

	if (!strcmp(key, "drop"))
		v->drop = drop_by_name(value);
	else if (!strcmp(key, "imm"))
		unhex(value, (uint8_t *)&pkt->imm, sizeof(pkt->imm));
	else if (!strcmp(key, "inv"))
		pkt->imm = (uint32_t)n;
	else if (!strcmp(key, "fwd_src"))
		unhex(value, pkt->fwd_src.ip.b, 16);
	else if (!strcmp(key, "fwd_dst"))
		unhex(value, pkt->fwd_dst.b, 16);
	else if (!strcmp(key, "fwd_sport"))
		pkt->fwd_src.port = (uint16_t)n;
#define X(field)                                                               \
	else if (!strcmp(key, #field)) pkt->field = (__typeof__(pkt->field))n;
	PKT_NUMBERS(X)
#undef X
	else fail_msg("%s: unknown field %s", v->name, key);
}

static inline bool vector_next(FILE *f, struct vector *v)
{
	static char line[LINE_BYTES];
	char *word, *save;

	if (!vectors_next(f, line))
		return false;
	*v = (struct vector){.drop = CNT_NUM};
	word = strtok_r(line, " ", &save);
	snprintf(v->name, sizeof(v->name), "%s", word);
	word = strtok_r(NULL, " ", &save);
	v->hdr_len = unhex(word, v->hdr, sizeof(v->hdr));
	word = strtok_r(NULL, " ", &save);
	v->total = v->hdr_len + strtoul(word, NULL, 0) + ICRC_BYTES;
	while ((word = strtok_r(NULL, " ", &save))) {
		char *eq = strchr(word, '=');

		assert_non_null(eq);
		*eq = 0;
		vector_field(v, word, eq + 1);
	}
	v->pkt.hdr_len = (uint16_t)v->hdr_len;
	v->pkt.op = opcode_info(v->pkt.opcode |
				(v->pkt.ext && v->pkt.opcode < OP_X_HELLO
					 ? OP_X_DATA
					 : 0))
			    ->flags &
		    ~(v->pkt.opcode < OP_X_HELLO ? (uint32_t)OPF_EXT : 0);
	return true;
}

#endif
