#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs programs of this build, what they need and configs for another machine that has the same LibTorch.

    ./bazelw run --config=cuda //tools:bundle -- --out phalanx_bundle.tar.gz

There, `tar xf phalanx_bundle.tar.gz && phalanx/run train --config phalanx/configs/quickstart.yaml` (run.py).
"""

import argparse
import gzip
import io
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tarfile

sys.dont_write_bytecode = True  # writes no cache next to the sources, where these files really are
import run
from elf import Elf

FOLDER = "phalanx"
MB = 1_000_000

# Libraries that every machine has, that LibTorch contains, or that are loaded before the plug-in for CUDA is.
ELSEWHERE = re.compile(r"(ld-linux[\w-]*|lib(c|m|dl|rt|pthread|resolv|util|gcc_s|stdc\+\+))\.so\b"
                       r"|lib(torch|c10)\w*\.so|lib(cuda|cudart|cupti|nccl)\.so\b")


class Refusal(Exception):
    """An error that says in one line why there is no bundle; tables may follow."""


def resolve(program):
    """Returns {name: path} of all shared libraries that the dynamic linker finds for a file on this machine; None: not
    found."""
    done = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise Refusal(f"ldd {program}: {done.stdout.strip()}")
    found = re.findall(r"^\s*(\S+) => (?:(/\S+)|not found)", done.stdout, re.M)
    return {name: pathlib.Path(path) if path else None for name, path in found}


def libraries(file):
    """Returns {name: path} of the libraries that a file needs, directly or indirectly, and that another machine may
    lack."""
    paths, found, left = resolve(file), {}, [(file, file)]
    while left:
        user, path = left.pop()
        for name in Elf(path.read_bytes()).needed():
            if name in found or ELSEWHERE.match(name):
                continue
            if paths.get(name) is None:
                raise Refusal(f"{user} needs {name}, which is not found on this machine")
            found[name] = paths[name]
            left.append((name, paths[name]))
    return found


def libtorch_of(program):
    """Returns (folder, version) of the LibTorch that a program was linked with."""
    library = resolve(program).get("libtorch_cpu.so")
    folder = library.resolve().parent.parent if library else None
    version = run.libtorch_version(folder) if folder else None
    if version is None:
        raise Refusal(f"{program} is not linked with a LibTorch of known version"
                      + (f" ({folder} has no version.py and no build-version)" if folder else ""))
    return folder, version


def portable(path, run_path="$ORIGIN"):
    """Returns the bytes of a program or library, changed to search its libraries in its own folder, or in others that are
    relative to it."""
    try:
        elf = Elf(path.read_bytes())
        elf.set_run_path(run_path)
    except ValueError as error:
        raise Refusal(f"{path}: {error}; keep LibTorch in a folder with a longer name") from None
    return bytes(elf.data)


def newest_glibc(members):
    """Returns the oldest glibc version that all of them run with."""
    versions = {version for data in members for version in re.findall(rb"GLIBC_(\d+)\.(\d+)", data)}
    return ".".join(map(str, max(tuple(map(int, version)) for version in versions)))


def newest_glibcxx(members):
    """Returns the oldest version of the symbols of libstdc++ that all of them run with."""
    return ".".join(map(str, max(map(run.newest_glibcxx, members))))


def collect(programs, plugin, files):
    """Returns {path in the bundle: (content, is executable)}, and {path in the bundle: name in the same folder} for
    links: a link to the program phalanx is one of its commands."""
    names, binaries = {}, {}
    for path in programs + ([plugin] if plugin else []):
        if names.setdefault(path.name, path) != path:
            raise Refusal(f"{path} and {names[path.name]} have the same name")
        binaries[path.resolve().name] = path.resolve()
    links = {f"bin/{name}": path.resolve().name for name, path in names.items() if path.resolve().name != name}
    for path in list(binaries.values()):
        binaries.update(libraries(path))
    members = {f"bin/{name}": (portable(path), True) for name, path in sorted(binaries.items())}
    manifest = {
        "libtorch": libtorch_of(programs[0])[1],
        "machine": platform.machine(),
        "glibc": newest_glibc([data for data, _ in members.values()]),
        "glibcxx": newest_glibcxx([data for data, _ in members.values()]),
        "cuda": plugin is not None,
        "programs": sorted(path.name for path in programs),
        "scripts": sorted(path.name for path in files if path.parts[0] == "tools" and os.access(path, os.X_OK)),
    }
    for path in files:
        members[str(path)] = (path.read_bytes(), os.access(path, os.X_OK))
    members["run"] = (pathlib.Path(run.__file__).read_bytes(), True)
    members["manifest.json"] = (json.dumps(manifest, indent=2).encode() + b"\n", False)
    return members, links


def pack(members, links):
    """Returns the packed archive. The same members always give the same bytes."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, compresslevel=6) as stream:
        with tarfile.open(fileobj=stream, mode="w") as archive:
            for name, (data, executable) in sorted(members.items()):
                entry = tarfile.TarInfo(f"{FOLDER}/{name}")
                entry.size, entry.mode = len(data), 0o755 if executable else 0o644
                archive.addfile(entry, io.BytesIO(data))
            for name, program in sorted(links.items()):
                entry = tarfile.TarInfo(f"{FOLDER}/{name}")
                entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, program, 0o777
                archive.addfile(entry)
    return packed.getvalue()


def check_size(packed, members, limit):
    if len(packed) <= limit * MB:
        return
    largest = sorted(members.items(), key=lambda member: -len(member[1][0]))[:10]
    lines = [f"{len(packed) / MB:.1f} MB exceed the limit of {limit:g} MB; the largest members, before compression:"]
    raise Refusal("\n".join(lines + [f"{len(data) / MB:9.1f} MB  {name}" for name, (data, _) in largest]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default="phalanx_bundle.tar.gz", help="the bundle to write")
    parser.add_argument("--limit", type=float, default=60, metavar="MB", help="a larger bundle is refused (60)")
    given = parser.add_argument_group("given by the build")
    given.add_argument("--program", type=pathlib.Path, action="append", required=True)
    given.add_argument("--plugin", type=pathlib.Path, help="libphalanx_cuda.so")
    given.add_argument("--files", type=pathlib.Path, nargs="+", default=[], help="files to add under the same paths")
    arguments = parser.parse_args()
    out = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), arguments.out)
    try:
        members, links = collect(arguments.program, arguments.plugin, arguments.files)
        packed = pack(members, links)
        check_size(packed, members, arguments.limit)
        out.write_bytes(packed)
    except Refusal as refusal:
        sys.exit(f"bundle: {refusal}")
    except OSError as error:
        sys.exit(f"bundle: {error}")
    print(f"{out}: {len(packed) / MB:.1f} MB, {len(members) + len(links)} files")


if __name__ == "__main__":
    main()
