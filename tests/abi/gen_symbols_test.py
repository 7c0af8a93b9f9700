#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""gen_symbols_test.py GEN-SYMBOLS SYMBOLS.TXT

The version script and the stubs that gen-symbols makes of lists of symbols,
among them those of later releases that the build host does not have.
"""
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import unittest

PATH, TABLE = sys.argv[1:3]
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("gen_symbols", PATH)
GEN = importlib.util.module_from_spec(
    importlib.util.spec_from_loader("gen_symbols", LOADER))
LOADER.exec_module(GEN)

ROWS = [
    ("a", "IBVERBS_1.0", False),
    ("a", "IBVERBS_1.1", True),
    ("b", "IBVERBS_1.10", True),
    ("c", "IBVERBS_1.9", True),
    ("p", "IBVERBS_PRIVATE_34", True),
]


class Map(unittest.TestCase):
    def test_nodes_in_order(self):
        text = GEN.version_script(ROWS, ["nopin_x"])
        at = [text.index(f"{node} {{") for node in (
            "IBVERBS_1.0", "IBVERBS_1.1", "IBVERBS_1.9", "IBVERBS_1.10",
            "IBVERBS_PRIVATE_34")]
        self.assertEqual(at, sorted(at))

    def test_parents(self):
        text = GEN.version_script(ROWS, ["nopin_x"])
        self.assertIn("c;\n} IBVERBS_1.1;", text)
        self.assertIn("b;\n} IBVERBS_1.9;", text)
        self.assertNotIn("} IBVERBS_1.10;", text)

    def test_everything_else_is_local_once(self):
        text = GEN.version_script(ROWS, ["nopin_x"])
        self.assertEqual(text.count("local: *;"), 1)
        self.assertGreater(text.index("local"), text.index("PRIVATE"))

    def test_own_names_in_their_own_node(self):
        text = GEN.version_script(ROWS, ["nopin_x"])
        self.assertIn("NOPIN_1.0 {\n\tglobal:\n\t\tnopin_x;\n", text)
        self.assertGreater(text.index("NOPIN"), text.index("PRIVATE"))

    def test_compat_versions_are_left_to_the_assembler(self):
        self.assertEqual(GEN.version_script(ROWS, ["nopin_x"]).count("\ta;"), 1)


class Stubs(unittest.TestCase):
    def test_kinds(self):
        table = [("a", "real", "null"), ("b", "err", "err"),
                 ("c", "none", "err"), ("p", "data", "err")]
        self.assertEqual(GEN.stubs(ROWS, table).splitlines(), [
            'STUB(NULL, a, IBVERBS_1_0, "a@IBVERBS_1.0")',
            'STUB(ERR, b, IBVERBS_1_10, "b@@IBVERBS_1.10")',
            'STUB(NONE, c, IBVERBS_1_9, "c@@IBVERBS_1.9")',
            "STUB_DATA(p)",
        ])

    def test_committed_table(self):
        table = GEN.read_table(TABLE)
        for name, default, kind in (
                ("ibv_reg_mr", True, "real"), ("ibv_reg_mr", False, "null"),
                ("ibv_post_future", True, "err"),
                ("ibv_cmd_create_cq_ex2", True, "err"),
                ("verbs_register_driver_34", True, "none"),
                ("verbs_register_driver_59", True, "none"),
                ("ibv_wr_opcode_str", True, "real"),
                ("verbs_allow_disassociate_destroy", True, "data")):
            self.assertEqual(GEN.kind_of(table, name, default), kind, name)

    def test_later_private_node(self):
        rows = [("ibv_query_gid_type", "IBVERBS_PRIVATE_59", True)]
        self.assertIn("IBVERBS_PRIVATE_59 {", GEN.version_script(rows, []))
        self.assertEqual(GEN.stubs(rows, GEN.read_table(TABLE)), "")

    def test_bad_tables(self):
        for text in ("a\n", "a what\n", "a real what\n", "a real err err\n"):
            with tempfile.NamedTemporaryFile("w", delete=False) as table:
                table.write(text)
            with self.assertRaises(SystemExit):
                GEN.read_table(table.name)
            os.unlink(table.name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
