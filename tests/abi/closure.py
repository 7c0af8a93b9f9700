#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""closure.py LIBDIR

Programs and libraries that use libibverbs load with ours in front of the
installed one, and no symbol or version of theirs is left undefined, with all
they drag in (perftest: libmlx5 and libefa).
"""
import glob
import os
import re
import shutil
import subprocess
import sys

# Installed by tools/bootstrap: these must be there.
REQUIRED = ["ibv_devinfo", "ibv_rc_pingpong", "ib_write_bw", "ib_send_lat",
            "ib_atomic_bw", "ibstat", "libmlx5.so.1", "libefa.so.1"]
# Looked at where they are.
OPTIONAL = ["rping", "qperf", "fio", "tgtd", "fi_info", "librdmacm.so.1",
            "ucx/libuct_ib.so.0", "ucx/libuct_rdmacm.so.0", "libfabric.so.1"]
PYVERBS = "/usr/lib/python3/dist-packages/pyverbs/**/*.so"


def library_dirs():
    text = subprocess.run(["/sbin/ldconfig", "-v", "-N", "-X"],
                          capture_output=True, text=True, check=False).stdout
    return re.findall(r"^(/\S+):", text, re.M)


def locate(name):
    if ".so" not in name:
        return shutil.which(name)
    for folder in library_dirs():
        if os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    return None


def problems(path, libdir):
    """What ld.so says is missing, with ours in front."""
    env = dict(os.environ, LD_LIBRARY_PATH=libdir)
    done = subprocess.run(["ldd", "-r", path], env=env, check=False,
                          capture_output=True, text=True)
    lines = (done.stdout + done.stderr).splitlines()
    bad = [line for line in lines
           if re.search(r"undefined symbol|not found|no version|Error", line)
           and "Py" not in line]
    ours = any(f"=> {libdir}/libibverbs.so.1" in line for line in lines)
    if not ours and any("libibverbs.so.1" in line for line in lines):
        bad.append("it does not use our libibverbs.so.1")
    return bad


def main(libdir):
    libdir, failed, seen = os.path.realpath(libdir), False, 0
    paths = [(name, locate(name)) for name in REQUIRED + OPTIONAL]
    paths += [(path, path) for path in glob.glob(PYVERBS, recursive=True)]
    for name, path in paths:
        if not path:
            if name in REQUIRED:
                print(f"{name}: not installed")
                failed = True
            continue
        seen += 1
        for line in problems(path, libdir):
            print(f"{name}: {line.strip()}")
            failed = True
    print(f"{seen} programs and libraries")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
