#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""run_test.py NOPIN FILES

nopin(1) and what it puts into programs: the environment, exit statuses and
messages, and the look-ups that the preload library answers (FILES checks those
from C).
"""
import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

NOPIN, FILES = sys.argv[1:3]
LIBDIR = os.path.join(os.path.dirname(os.path.realpath(NOPIN)), "../../lib")

MAN = os.path.join(os.path.dirname(__file__), "../../man")

WITH_SBIN = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin")


def nopin(*args, **kwargs):
    return subprocess.run([NOPIN, *args], capture_output=True, text=True,
                          timeout=60, check=False, **kwargs)


class Commands(unittest.TestCase):
    def test_help_and_version(self):
        self.assertIn("nopin run", nopin("--help").stdout)
        self.assertRegex(nopin("--version").stdout, r"^nopin \d")

    def test_help_of_each_command(self):
        """It names the options that the manual page has, and no others."""
        pages = {"stat": ["stat"], "suspend": ["suspend", "move", "resume"],
                 None: ["run", "trace"]}
        listed = re.findall(r"^  nopin (\w+)", nopin("--help").stdout, re.M)
        self.assertEqual(sorted(listed), sorted(sum(pages.values(), [])))
        for page, commands in pages.items():
            named = set()
            for command in commands:
                for flag in "--help", "-h":
                    done = nopin(command, flag)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertTrue(done.stdout.startswith(
                        f"usage: nopin {command} "), done.stdout)
                named |= set(re.findall(r"--[a-z-]+", done.stdout))
            described = set()
            if page:
                with open(os.path.join(MAN, f"nopin-{page}.1"),
                          encoding="utf-8") as file:
                    described = set(re.findall(
                        r"--[a-z-]+", file.read().replace("\\-", "-")))
            self.assertEqual(named, described)

    def test_usage_errors(self):
        for args in ([], ["nosuch"], ["--nosuch"], ["run"], ["run", "--"],
                     ["run", "--nosuch", "true"]):
            done = nopin(*args)
            self.assertEqual(done.returncode, 2, args)
            self.assertEqual(done.stdout, "")
            self.assertNotEqual(done.stderr, "")


class Run(unittest.TestCase):
    def test_environment(self):
        env = dict(os.environ, LD_LIBRARY_PATH="/a", LD_PRELOAD="",
                   ASAN_OPTIONS="x=1")
        lib = os.path.realpath(LIBDIR)
        out = nopin("run", "--", "env", env=env).stdout.splitlines()
        self.assertIn(f"LD_LIBRARY_PATH={lib}:/a", out)
        self.assertIn(f"LD_PRELOAD={lib}/libnopin-preload.so", out)
        self.assertIn("ASAN_OPTIONS=x=1:verify_asan_link_order=0", out)

    def test_exit_status_is_the_programs(self):
        self.assertEqual(nopin("run", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(nopin("run", "--", "ls", "-d", "/").returncode, 0)

    def test_arguments_are_the_programs(self):
        done = nopin("run", "--", "printf", "%s,", "-h", "--", "--help", "")
        self.assertEqual(done.stdout, "-h,--,--help,,")

    def test_not_found(self):
        for program in ("no-such-program", "/no/such/program"):
            done = nopin("run", program)
            self.assertEqual(done.returncode, 127)
            self.assertIn(program, done.stderr)

    def test_not_executable(self):
        done = nopin("run", "/etc/passwd")
        self.assertEqual(done.returncode, 126)
        self.assertIn("Permission denied", done.stderr)

    def test_warnings(self):
        with tempfile.TemporaryDirectory() as folder:
            # an ELF header with no program headers: static, and no program
            path = os.path.join(folder, "static")
            with open(path, "wb") as elf:
                elf.write(b"\x7fELF\x02\x01\x01" + bytes(57))
            os.chmod(path, 0o755)
            done = nopin("run", path)
            self.assertIn("statically", done.stderr)
            for ident, machine, told in ((b"\1\1\1", 3, "32-bit"),
                                         (b"\2\1\1", 8, "machine")):
                with open(path, "wb") as elf:
                    elf.write(b"\x7fELF" + ident + bytes(11)
                              + machine.to_bytes(2, "little") + bytes(44))
                done = nopin("run", path)
                self.assertIn(told, done.stderr)
                self.assertIn("will not use nopin", done.stderr)
            path = os.path.join(folder, "script")
            with open(path, "w", encoding="utf-8") as script:
                script.write("#!/bin/sh\nexit 3\n")
            os.chmod(path, 0o755)
            done = nopin("run", path)
            self.assertEqual((done.stderr, done.returncode), ("", 3))

    def test_why_there_are_no_libraries(self):
        """Copied to where they are, are not, may not be named, or are hidden."""
        for name, libraries, told in (("a", False, "cannot find"),
                                      ("a b", True, "a space"),
                                      ("a:b", True, "a colon")):
            with tempfile.TemporaryDirectory() as folder:
                tree = os.path.join(folder, name)
                os.makedirs(f"{tree}/tools/nopin")
                copy = shutil.copy(os.path.realpath(NOPIN),
                                   f"{tree}/tools/nopin")
                if libraries:
                    shutil.copytree(LIBDIR, f"{tree}/lib")
                done = subprocess.run([copy, "run", "true"], text=True,
                                      capture_output=True, check=False)
                self.assertIn(told, done.stderr)
                self.assertEqual(done.returncode, 125)

    def test_without_proc(self):
        script = ('umount -l /proc 2>/dev/null || mount -t tmpfs none /proc; '
                  '"$0" run -- sh -c "echo lives"')
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script,
                               os.path.realpath(NOPIN)], text=True,
                              capture_output=True, check=False)
        if done.stderr.startswith("unshare"):
            return  # no user namespaces
        self.assertEqual((done.stdout, done.stderr), ("lives\n", ""))

    def test_set_user_id(self):
        done = nopin("run", "true")
        self.assertEqual(done.stderr, "")
        with tempfile.TemporaryDirectory() as folder:
            path = shutil.copy(shutil.which("true"), folder)
            # set-group-ID to a group that is not ours
            groups = {os.getegid()} | set(os.getgroups())
            other = next(g for g in range(1, 100) if g not in groups)
            try:
                os.chown(path, -1, other)
            except PermissionError:
                return
            os.chmod(path, 0o2755)
            self.assertIn("set-group-ID", nopin("run", path).stderr)


class Preload(unittest.TestCase):
    def test_files(self):
        done = nopin("run", FILES)
        self.assertEqual((done.stdout, done.stderr, done.returncode),
                         ("", "", 0))

    def test_children(self):
        done = nopin("run", "sh", "-c",
                     "cat /sys/class/infiniband/nopin0/node_type;"
                     "test -c /dev/infiniband/uverbs0 && echo device;"
                     "ls -l /sys/class/infiniband/nopin0/device/net/")
        self.assertEqual(done.stderr, "")
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:2], ["1: CA", "device"])
        self.assertTrue(lines[-1].startswith("drwx"), lines)

    def test_without_the_launcher_there_is_nothing(self):
        self.assertFalse(os.path.exists("/sys/class/infiniband/nopin0"))

    def test_another_libibverbs_answers_nothing(self):
        """LD_LIBRARY_PATH lost on the way: no endless recursion."""
        done = nopin("run", "env", "-u", "LD_LIBRARY_PATH", "cat",
                     "/sys/class/infiniband/nopin0/board_id")
        self.assertIn("No such file", done.stderr)


class Manual(unittest.TestCase):
    def test_environment_is_described(self):
        root = os.path.join(os.path.dirname(os.path.realpath(__file__)),
                            "../..")
        with open(f"{root}/src/nic/config.c", encoding="utf-8") as source:
            read = set(re.findall(r'"(NOPIN_[A-Z]+)"', source.read()))
        with open(f"{root}/man/nopin.7", encoding="utf-8") as manual:
            told = set(re.findall(r"^\.BR (NOPIN_[A-Z]+) =", manual.read(),
                                  re.M))
        self.assertGreater(len(read), 5)
        self.assertEqual(read, told)


class Programs(unittest.TestCase):
    def test_ibv_devices(self):
        done = nopin("run", "ibv_devices")
        self.assertEqual((done.stderr, done.returncode), ("", 0))
        self.assertIn("nopin0", done.stdout)

    def test_ibv_devinfo(self):
        done = nopin("run", "--", "ibv_devinfo", "-v", "-d", "nopin0")
        self.assertEqual((done.stderr, done.returncode), ("", 0))
        for text in ("PORT_ACTIVE", "RoCE v2", "ODP_SUPPORT_IMPLICIT",
                     "SUPPORT_ATOMIC", "board_id:"):
            self.assertIn(text, done.stdout)

    def test_librdmacm(self):
        """As the README says."""
        done = nopin("run", "--", sys.executable, "-c", """
import ctypes
cm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
num = ctypes.c_int()
cm.rdma_get_devices.restype = ctypes.c_void_p
cm.rdma_create_event_channel.restype = ctypes.c_void_p
print(bool(cm.rdma_get_devices(ctypes.byref(num))), num.value)
ctypes.set_errno(0)
print(cm.rdma_create_event_channel(), ctypes.get_errno())
""")
        self.assertEqual((done.stdout.split(), done.stderr),
                         (["True", "1", "None", str(errno.ENOENT)], ""))

    def test_ibstat(self):
        """Lists directories by scandir()."""
        done = nopin("run", "--", "ibstat", env=WITH_SBIN)
        self.assertEqual((done.stderr, done.returncode), ("", 0))
        for text in ("CA 'nopin0'", "Number of ports: 1", "State: Active",
                     "Link layer: Ethernet"):
            self.assertIn(text, done.stdout)

    def test_ibstatus(self):
        """A shell script: goes to directories and lists what is there."""
        for args in ([], ["nopin0"], ["nopin0:1"]):
            done = nopin("run", "--", "ibstatus", *args, env=WITH_SBIN)
            self.assertEqual((done.stderr, done.returncode), ("", 0))
            for text in ("'nopin0' port 1", "4: ACTIVE", "Ethernet"):
                self.assertIn(text, done.stdout)

    def test_perftest_counters(self):
        """Opens them once, and reads before and after."""
        size, times = 4096, 500
        test = ["run", "--", "ib_write_bw", "-s", str(size), "-n", str(times),
                "-p", str(20000 + os.getpid() % 20000)]
        with subprocess.Popen([NOPIN, *test], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as server:
            while server.poll() is None:
                done = nopin(*test, "-W", "counters/port_xmit_data,"
                             "hw_counters/out_of_buffer", "127.0.0.1")
                if done.returncode == 0:
                    break
            self.assertEqual(server.wait(60), 0)
        sent = re.search(r"port_xmit_data=(\d+)", done.stdout)
        self.assertIsNotNone(sent, done.stdout + done.stderr)
        self.assertGreaterEqual(4 * int(sent[1]), size * times)
        self.assertIn("out_of_buffer=0", done.stdout)

    def test_perftest_sends_inline(self):
        """Which it decides by the vendor_part_id alone."""
        command = [NOPIN, "run", "--", "ib_write_lat", "-n", "20",
                   "-p", str(20000 + os.getpid() % 10000)]
        env = dict(os.environ, NOPIN_ADDR="lo")
        with subprocess.Popen(command, env=env, text=True,
                              stdout=subprocess.PIPE) as server:
            try:
                done = nopin(*command[1:], "127.0.0.1", env=env)
                # until it listens
                while "connect" in done.stderr and server.poll() is None:
                    done = nopin(*command[1:], "127.0.0.1", env=env)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, r"Max inline data +: [1-9]")
                server.communicate(timeout=60)
            finally:
                server.kill()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
