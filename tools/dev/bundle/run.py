#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of this bundle with the LibTorch of this machine.

    phalanx/run                                                       lists them
    phalanx/run train --config phalanx/configs/quickstart.yaml

LibTorch is the folder in LIBTORCH, or else the one in the package torch of the python3 that runs this script; it must
have the version that the bundle was built with. The exit status is the program's, or 2 if it cannot be run.
"""

import importlib.util
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


class Refusal(Exception):
    """An error that says in one line what is missing or differs."""


def libtorch_version(folder):
    """Returns a version such as 2.13.0, or None if there is no LibTorch."""
    if not (folder / "lib/libtorch_cpu.so").exists():
        return None
    for name, pattern in (("version.py", r"^__version__ = '([\d.]+)"), ("build-version", r"^([\d.]+)")):
        if (folder / name).exists() and (found := re.search(pattern, (folder / name).read_text(), re.M)):
            return found[1]
    return None


def find_libtorch(wanted, known=None):
    """Returns the folder of LibTorch `wanted`. `known` is one that may have it, which the environment overrides."""
    given = os.environ.get("LIBTORCH")
    if not given and known and libtorch_version(pathlib.Path(known)) == wanted:
        return pathlib.Path(known)
    package = None if given else importlib.util.find_spec("torch")
    if not given and (package is None or not package.origin):
        raise Refusal(f"there is no LibTorch: LIBTORCH is not set, and {sys.executable} has no torch; install "
                      f"torch=={wanted} there, or name the folder of LibTorch {wanted} in LIBTORCH")
    folder = pathlib.Path(given or pathlib.Path(package.origin).parent)
    version = libtorch_version(folder)
    if version is None:
        raise Refusal(f"{folder} is not LibTorch: it has no lib/libtorch_cpu.so, or no version.py and no build-version"
                      f"; name the folder of LibTorch {wanted} in LIBTORCH")
    if version != wanted:
        raise Refusal(f"Phalanx was built with LibTorch {wanted}, but {folder} has {version}; install torch=="
                      f"{wanted}, or name its folder in LIBTORCH, or build Phalanx with LibTorch {version}")
    return folder


def newest_glibcxx(data):
    """Returns the newest version of libstdc++'s symbols that a file has or needs, as numbers."""
    versions = re.findall(rb"GLIBCXX_(\d+)\.(\d+)\.(\d+)", data)
    return max((tuple(map(int, version)) for version in versions), default=(0, 0, 0))


def find_libstdcxx():
    """Returns the libstdc++ that programs use here, or None."""
    folders = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    found = [pathlib.Path(folder) / "libstdc++.so.6" for folder in folders]
    ldconfig = shutil.which("ldconfig", path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin")
    if ldconfig:
        listed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False).stdout
        kind = "x86-64" if platform.machine() == "x86_64" else platform.machine().replace("aarch64", "AArch64")
        lines = [line for line in listed.splitlines() if "libstdc++.so.6 " in line and kind in line]
        found += [pathlib.Path(line.split("=> ")[1]) for line in lines]
    return next((path for path in found if path.exists()), None)


def check_libstdcxx(manifest):
    library = find_libstdcxx()
    if library is None:
        raise Refusal("this machine has no libstdc++.so.6; install it")
    has, needed = newest_glibcxx(library.read_bytes()), tuple(map(int, manifest["glibcxx"].split(".")))
    if has < needed:
        raise Refusal(f"this build needs GLIBCXX_{manifest['glibcxx']}, but {library} has GLIBCXX_"
                      f"{'.'.join(map(str, has))}; build it with a compiler that is as old, or put a newer libstdc++ into "
                      "LD_LIBRARY_PATH")


def check_machine(manifest):
    machine, libc = platform.machine(), platform.libc_ver()
    if machine != manifest["machine"]:
        raise Refusal(f"this build is for processors of kind {manifest['machine']}, but this machine has {machine}")
    numbers = [[int(number) for number in version.split(".")] for version in (libc[1] or "0", manifest["glibc"])]
    if libc[0] != "glibc" or numbers[0] < numbers[1]:
        raise Refusal(f"this build needs glibc {manifest['glibc']}, but this machine has {' '.join(libc).strip()}; "
                      "build it on a system that is as old")
    check_libstdcxx(manifest)


def with_libtorch(environment, folder):
    """Returns the environment for programs that use the LibTorch in `folder`. They search their own libraries before
    it."""
    others = environment.get("LD_LIBRARY_PATH")
    libraries = str((folder / "lib").resolve())
    return {**environment, "LD_LIBRARY_PATH": f"{libraries}:{others}" if others else libraries}


def command(manifest, words):
    """Returns the command to execute, and its environment."""
    name, *arguments = words
    environment = dict(os.environ)
    if name in manifest["scripts"]:
        return [sys.executable, str(HERE / "tools/dev" / name), *arguments], environment
    if name not in manifest["programs"]:
        raise Refusal(f"this bundle has no {name}; it has {', '.join(manifest['programs'] + manifest['scripts'])}")
    check_machine(manifest)
    environment = with_libtorch(environment, find_libtorch(manifest["libtorch"]))
    return [str(HERE / "bin" / name), *arguments], environment


def main():
    manifest = json.loads((HERE / "manifest.json").read_text())
    if len(sys.argv) < 2:
        kind = "with" if manifest["cuda"] else "without"
        print(f"built with LibTorch {manifest['libtorch']}, {kind} the plug-in for CUDA")
        print("\n".join(manifest["programs"] + manifest["scripts"]))
        return 0
    try:
        words, environment = command(manifest, sys.argv[1:])
    except Refusal as refusal:
        print(f"run: {refusal}", file=sys.stderr)
        return 2
    sys.stdout.flush()
    os.execve(words[0], words, environment)


if __name__ == "__main__":
    sys.exit(main())
