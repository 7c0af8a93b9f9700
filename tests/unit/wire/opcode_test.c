/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* opcode_test.c: the table against IBTA tables 38 and 39 written out again, and
 * the rules of a message's packets against a list of them.
 */
#include "base/check.h"
#include "wire_test.h"

#include <stddef.h>

/* Every opcode there is. @x_bytes 0: no extension data packet has it. */
static const struct {
	uint8_t opcode;
	const char *name;
	uint8_t bytes, x_bytes;
} known[] = {
	{0x00, "SEND_FIRST", 12, 40},
	{0x01, "SEND_MIDDLE", 12, 40},
	{0x02, "SEND_LAST", 12, 40},
	{0x03, "SEND_LAST_IMM", 16, 40},
	{0x04, "SEND_ONLY", 12, 40},
	{0x05, "SEND_ONLY_IMM", 16, 40},
	{0x06, "WRITE_FIRST", 28, 40},
	{0x07, "WRITE_MIDDLE", 12, 40},
	{0x08, "WRITE_LAST", 12, 40},
	{0x09, "WRITE_LAST_IMM", 16, 40},
	{0x0a, "WRITE_ONLY", 28, 40},
	{0x0b, "WRITE_ONLY_IMM", 32, 40},
	{0x0c, "READ_REQ", 28, 40},
	{0x0d, "READ_RESP_FIRST", 16, 40},
	{0x0e, "READ_RESP_MIDDLE", 12, 40},
	{0x0f, "READ_RESP_LAST", 16, 40},
	{0x10, "READ_RESP_ONLY", 16, 40},
	{0x11, "ACK", 16, 0},
	{0x12, "ATOMIC_ACK", 24, 48},
	{0x13, "CMP_SWP", 40, 56},
	{0x14, "FETCH_ADD", 40, 56},
	{0x16, "SEND_LAST_INV", 16, 40},
	{0x17, "SEND_ONLY_INV", 16, 40},
	{0x64, "UD_SEND_ONLY", 20, 0},
	{0x65, "UD_SEND_ONLY_IMM", 24, 0},
	{0xc0, "X_HELLO", 44, 0},
	{0xc1, "X_HELLO_REPLY", 44, 0},
	{0xc2, "X_FORWARD", 54, 0},
	{0xc3, "X_ACK", 32, 0},
	{0xc4, "X_OPEN", 24, 0},
	{0xf8, "X_WRITE_LAST_NOTIFY", 40, 0},
	{0xf9, "X_WRITE_ONLY_NOTIFY", 40, 0},
};

static void opcode_info__names_and_bytes(void **state)
{
	unsigned num = 0, expected = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		const struct op_info *std = opcode_info(known[i].opcode);
		const struct op_info *x;

		assert_string_equal(std->name, known[i].name);
		assert_int_equal(std->hdr_bytes, known[i].bytes);
		expected++;
		if (!known[i].x_bytes)
			continue;
		x = opcode_info(OP_X_DATA | known[i].opcode);
		assert_int_equal(x->hdr_bytes, known[i].x_bytes);
		assert_int_equal(x->flags, std->flags | OPF_EXT);
		assert_string_equal(x->name + 2, std->name);
		expected++;
	}
	for (unsigned op = 0; op < 256; op++) {
		const struct op_info *info = opcode_info((uint8_t)op);

		assert_non_null(info);
		assert_non_null(info->name);
		num += info->flags != 0;
		if (!info->flags)
			assert_int_equal(info->hdr_bytes, 0);
	}
	assert_int_equal(num, expected);
}

static bool has(const char *name, const char *part)
{
	return strstr(name, part) != NULL;
}

/* IBTA's names say what a packet is. */
static void opcode_info__flags_follow_from_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		const uint32_t f = opcode_info(known[i].opcode)->flags;
		const char *n = known[i].name;
		bool resp = has(n, "RESP") || has(n, "ACK"), part;
		bool atomic = has(n, "CMP") || has(n, "FETCH");

		part = has(n, "FIRST") || has(n, "MIDDLE") || has(n, "LAST");
		assert_int_equal(!!(f & OPF_FIRST), has(n, "FIRST") || !part);
		assert_int_equal(!!(f & OPF_LAST), has(n, "LAST") || !part);
		assert_int_equal(!!(f & OPF_SEND), has(n, "SEND"));
		assert_int_equal(!!(f & OPF_WRITE), has(n, "WRITE"));
		assert_int_equal(!!(f & OPF_READ), has(n, "READ"));
		assert_int_equal(!!(f & OPF_ATOMIC),
				 atomic || has(n, "ATOMIC"));
		assert_int_equal(!!(f & OPF_IMM), has(n, "IMM"));
		assert_int_equal(!!(f & OPF_INV), has(n, "INV"));
		assert_int_equal(!!(f & OPF_UD), has(n, "UD_"));
		assert_int_equal(!!(f & OPF_DETH), has(n, "UD_"));
		assert_int_equal(!!(f & OPF_EXT), known[i].opcode >= 0xc0);
		assert_int_equal(!!(f & OPF_RESPONSE), resp);
		assert_int_equal(!!(f & OPF_REQUEST),
				 !resp && (known[i].opcode < 0xc0 ||
					   known[i].opcode >= OP_X_DATA));
		assert_int_equal(!!(f & OPF_NOTIFY), has(n, "NOTIFY"));
		assert_int_equal(!!(f & OPF_RETH),
				 has(n, "READ_REQ") || has(n, "WRITE_FIRST") ||
					 has(n, "WRITE_ONLY"));
		assert_int_equal(!!(f & OPF_AETH), resp && !has(n, "MIDDLE"));
		assert_int_equal(!!(f & OPF_ATOMICETH), atomic);
		assert_int_equal(!!(f & OPF_ATOMICACKETH), has(n, "ATOMIC"));
		assert_int_equal(!!(f & OPF_PAYLOAD),
				 has(n, "SEND") || has(n, "WRITE") ||
					 has(n, "READ_RESP") ||
					 has(n, "FORWARD"));
	}
}

/* Every opcode of a message that may have several packets is selected by its
 * own flags.
 */
static void op_select__inverse_of_flags(void **state)
{
	unsigned selected = 0;

	(void)state;
	for (uint8_t op = 0; op < 0x20; op++) {
		const uint32_t f = opcode_info(OP_X_DATA | op)->flags;

		if (!(f & OPF_PAYLOAD))
			continue;
		assert_int_equal(op_select(f), op);
		selected++;
	}
	assert_int_equal(selected, 20);
}

static void op_select__imm_only_on_last(void **state)
{
	(void)state;
	assert_int_equal(op_select(OPF_SEND | OPF_FIRST | OPF_IMM),
			 OP_SEND_FIRST);
	assert_int_equal(op_select(OPF_SEND | OPF_INV), OP_SEND_MIDDLE);
	assert_int_equal(op_select(OPF_SEND | OPF_LAST | OPF_INV),
			 OP_SEND_LAST_INV);
	assert_int_equal(op_select(OPF_WRITE | OPF_IMM), OP_WRITE_MIDDLE);
	assert_int_equal(op_select(OPF_WRITE | OPF_FIRST | OPF_IMM),
			 OP_WRITE_FIRST);
	assert_int_equal(op_select(OPF_WRITE | OPF_NOTIFY), OP_WRITE_MIDDLE);
}

static void op_follows__requests(void **state)
{
	static const struct {
		uint8_t prev, op;
		bool ok;
	} t[] = {
		{OP_SEND_FIRST, OP_SEND_MIDDLE, true},
		{OP_SEND_FIRST, OP_SEND_LAST, true},
		{OP_SEND_FIRST, OP_SEND_LAST_IMM, true},
		{OP_SEND_MIDDLE, OP_SEND_LAST_INV, true},
		{OP_SEND_MIDDLE, OP_SEND_MIDDLE, true},
		{OP_SEND_FIRST, OP_SEND_FIRST, false},
		{OP_SEND_FIRST, OP_SEND_ONLY, false},
		{OP_SEND_FIRST, OP_WRITE_MIDDLE, false},
		{OP_SEND_MIDDLE, OP_WRITE_LAST, false},
		{OP_SEND_MIDDLE, OP_READ_REQ, false},
		{OP_SEND_LAST, OP_SEND_MIDDLE, false},
		{OP_SEND_LAST, OP_SEND_LAST, false},
		{OP_SEND_LAST, OP_WRITE_FIRST, true},
		{OP_SEND_ONLY_INV, OP_READ_REQ, true},
		{OP_WRITE_FIRST, OP_WRITE_MIDDLE, true},
		{OP_WRITE_FIRST, OP_WRITE_LAST_IMM, true},
		{OP_WRITE_FIRST, OP_SEND_LAST, false},
		{OP_WRITE_MIDDLE, OP_CMP_SWP, false},
		{OP_WRITE_MIDDLE, OP_WRITE_ONLY, false},
		{OP_WRITE_ONLY, OP_WRITE_LAST, false},
		{OP_WRITE_ONLY, OP_FETCH_ADD, true},
		{OP_READ_REQ, OP_READ_REQ, true},
		{OP_READ_REQ, OP_SEND_MIDDLE, false},
		{OP_CMP_SWP, OP_SEND_FIRST, true},
		{OP_READ_RESP_FIRST, OP_READ_RESP_MIDDLE, true},
		{OP_READ_RESP_FIRST, OP_READ_RESP_LAST, true},
		{OP_READ_RESP_MIDDLE, OP_READ_RESP_ONLY, false},
		{OP_READ_RESP_MIDDLE, OP_ACK, false},
		{OP_READ_RESP_LAST, OP_ACK, true},
		{OP_ACK, OP_READ_RESP_MIDDLE, false},
		{OP_ACK, OP_ATOMIC_ACK, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		if (op_follows(opcode_info(t[i].prev)->flags,
			       opcode_info(t[i].op)->flags) != t[i].ok)
			fail_msg("%s after %s", opcode_info(t[i].op)->name,
				 opcode_info(t[i].prev)->name);
	for (uint8_t op = 0; op < 0x20; op++) {
		const uint32_t f = opcode_info(op)->flags;

		assert_int_equal(op_follows(0, f), !!(f & OPF_FIRST));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opcode_info__names_and_bytes),
		cmocka_unit_test(opcode_info__flags_follow_from_names),
		cmocka_unit_test(op_select__inverse_of_flags),
		cmocka_unit_test(op_select__imm_only_on_last),
		cmocka_unit_test(op_follows__requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
