#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs Phalanx's library and tools into a folder, or packs them for other machines.

    ./bazelw run //tools:install -- --prefix ~/phalanx
    ./bazelw run //tools:install -- --format tar      phalanx-VERSION-linux-ARCHITECTURE.tar.gz
    ./bazelw run //tools:install -- --format deb      phalanx_VERSION_ARCHITECTURE.deb

The result can be moved. It needs LibTorch of the version that it was built with, which is not part of it.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # writes no cache next to the sources, where these files really are
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "dev/bundle")]
import bundle
import headers
import package
from elf import Elf

MB = 1_000_000
DEBIAN_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
LIBRARY, PROGRAMS = "lib/phalanx", "lib/phalanx/bin"  # the folders of private libraries, plug-ins and tools

CUDA_PLUGIN = "libphalanx_cuda.so"  # exists with --config=cuda
TOOLS = ["tools/phalanx", "tools/doctor/doctor", "tools/download/download"]
DOCUMENTS = ["README.md", "CHANGELOG.md", "LICENSE", "docs/*.md"]

# Appended to the installed phalanx/version.h, for those whose build does not check the version.
CHECK = """
#include <torch/headeronly/version.h>

static_assert(TORCH_VERSION_MAJOR == {} && TORCH_VERSION_MINOR == {} && TORCH_VERSION_PATCH == {},
              "this libphalanx.so was built with LibTorch {}; compile and run with the same version");
"""

# Packages whose licences apply to code that is contained in libphalanx.so or in private copies of libraries.
CONTAINED = ["libgloo-dev", "libssl-dev", "libyaml-cpp-dev", "nlohmann-json3-dev"]


def version_of(root):
    return re.search(r'PHALANX_VERSION "([\d.]+)"', (root / "framework/base/version.h").read_text())[1]


def is_of_system(path):
    return path.as_posix().startswith(("/lib", "/usr/"))


class Build:
    """The files of this build that are installed. `root` is the folder of the files of //tools:install."""

    def __init__(self, root):
        self.root, self.version = root, version_of(root)
        self.library = (root / "tools/install/libphalanx.so").resolve()
        self.plugins = [*root.glob("tools/install/backend_*.so"), *root.glob(f"framework/backends/nccl/{CUDA_PLUGIN}")]
        self.programs = {path.name: path.resolve() for path in map(root.joinpath, TOOLS)}
        self.libtorch_folder, self.libtorch = bundle.libtorch_of(self.library)
        self.soname = Elf(self.library.read_bytes()).soname()
        if self.soname != f"libphalanx.so.{self.version.rpartition('.')[0]}":
            raise bundle.Refusal(f"{self.library} is called {self.soname}, which does not fit version {self.version}; "
                                 "correct tools/install/BUILD.bazel")
        self.library_needs = bundle.libraries(self.library)
        needs = {name: path for program in self.programs.values() for name, path in bundle.libraries(program).items()}
        self.program_needs = {name: path for name, path in needs.items() if name not in self.library_needs}

    def system_libraries(self):
        """Returns the libraries of the operating system with which files of this build are linked."""
        found = {**self.library_needs, **self.program_needs}
        ours = [self.library, *self.programs.values(), *(path for path in found.values() if not is_of_system(path))]
        needed = {name for path in ours for name in Elf(path.read_bytes()).needed()}
        return {name: path for name, path in found.items() if name in needed and is_of_system(path)}

    def binaries(self, with_system_libraries):
        """Returns the members that are programs and libraries."""
        def is_copied(path):
            return with_system_libraries or not is_of_system(path)

        members = {f"lib/{self.soname}": bundle.portable(self.library, "$ORIGIN/phalanx")}
        for path in self.plugins:
            members[f"{LIBRARY}/{path.name}"] = bundle.portable(path.resolve(), "$ORIGIN:$ORIGIN/..")
        for name, path in self.programs.items():
            members[f"{PROGRAMS}/{name}"] = bundle.portable(path, "$ORIGIN:$ORIGIN/..")
        for folder, needs in ((LIBRARY, self.library_needs), (PROGRAMS, self.program_needs)):
            members.update({f"{folder}/{name}": bundle.portable(path) for name, path in needs.items() if is_copied(path)})
        return members

    def headers(self):
        members = {}
        for path in headers.listed(self.root):
            text = headers.rewrite(self.root, (self.root / path).read_text())
            if path == "phalanx/version.h":
                text += CHECK.format(*self.libtorch.split("."), self.libtorch)
            members[f"include/{headers.installed_path(path)}"] = text.encode()
        return members

    def settings(self, libtorch_folder):
        """Returns the files for CMake and pkg-config."""
        values = {"VERSION": self.version, "LIBTORCH": self.libtorch, "SONAME": self.soname,
                  "LIBTORCH_FOLDER": libtorch_folder}
        places = {"PhalanxConfig.cmake": "lib/cmake/Phalanx", "PhalanxConfigVersion.cmake": "lib/cmake/Phalanx",
                  "phalanx.pc": "lib/pkgconfig"}
        return {f"{folder}/{name}": re.sub(r"@(\w+)@", lambda match: values[match[1]],
                                           (HERE / f"{name}.in").read_text()).encode()
                for name, folder in places.items()}

    def texts(self):
        """Returns documents, licences and example configs."""
        places = {"share/doc/phalanx": DOCUMENTS, "share/phalanx": ["configs/*.yaml"]}
        members = {f"{folder}/{path.relative_to(self.root)}": path.read_bytes()
                   for folder, patterns in places.items() for pattern in patterns for path in self.root.glob(pattern)}
        for name in CONTAINED:
            licence = pathlib.Path("/usr/share/doc", name, "copyright")
            if licence.exists():
                members[f"share/doc/phalanx/licences/{name}"] = licence.read_bytes()
        return members

    def tree(self, with_system_libraries, libtorch_folder):
        """Returns all members and links."""
        binaries = self.binaries(with_system_libraries)
        members = {path: (data, True) for path, data in binaries.items()}
        texts = {**self.headers(), **self.settings(libtorch_folder or "/opt/libtorch"), **self.texts(),
                 f"{LIBRARY}/run.py": (HERE.parent / "dev/bundle/run.py").read_bytes()}
        members |= {path: (data, False) for path, data in texts.items()}
        members["bin/phalanx"] = ((HERE / "launcher.py").read_bytes(), True)
        links = {"lib/libphalanx.so": self.soname, f"{PROGRAMS}/probe": "phalanx"}  # doctor calls it by this name
        links |= {f"{PROGRAMS}/{path.name}": f"../{path.name}" for path in self.plugins if path.name == CUDA_PLUGIN}
        manifest = {
            "version": self.version,
            "libtorch": self.libtorch,
            "libtorch_folder": libtorch_folder,
            "machine": platform.machine(),
            "glibc": bundle.newest_glibc(binaries.values()),
            "glibcxx": bundle.newest_glibcxx(binaries.values()),
            "files": sorted([*members, *links, package.MANIFEST]),
        }
        members[package.MANIFEST] = (json.dumps(manifest, indent=1).encode() + b"\n", False)
        return members, links, manifest


def packages_of(paths):
    """Returns the Debian packages that have files, or None if this is no Debian system."""
    found = set()
    for path in paths:
        # Up to Debian 12, packages may have the file under /lib, which is a link to /usr/lib.
        for name in (path.resolve().as_posix(), path.resolve().as_posix().removeprefix("/usr")):
            try:
                done = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True, check=False)
            except FileNotFoundError:
                return None
            if done.returncode == 0:
                found.add(done.stdout.split(":")[0])
                break
        else:
            return None
    return sorted(found)


def control_fields(build, manifest, packages):
    """Returns the fields of the package's control file."""
    needs = [f"libc6 (>= {manifest['glibc']})", "libgcc-s1", "libstdc++6", "python3", *packages]
    return {
        "Package": "phalanx",
        "Version": build.version,
        "Architecture": DEBIAN_ARCHITECTURES[platform.machine()],
        "Maintainer": f"{os.environ.get('DEBFULLNAME', 'Phalanx')} <{os.environ.get('DEBEMAIL', 'root@localhost')}>",
        "Depends": ", ".join(needs),
        "Section": "science",
        "Priority": "optional",
        "Description": "distributed deep-learning training with LibTorch\n"
                       " The library libphalanx.so for C++ programs, and the program phalanx, which trains by YAML configs.\n"
                       f" LibTorch {build.libtorch} is needed, but is not packaged: pip install torch=={build.libtorch},\n"
                       " or set LIBTORCH to its folder.",
    }


def write_package(build, format, out):
    """Writes a tarball or a Debian package, and returns its path and size."""
    packages = packages_of(build.system_libraries().values()) if format == "deb" else None
    members, links, manifest = build.tree(with_system_libraries=packages is None, libtorch_folder=None)
    if format == "deb":
        name = f"phalanx_{build.version}_{DEBIAN_ARCHITECTURES[platform.machine()]}.deb"
        data = package.debian_package(members, links, "usr", control_fields(build, manifest, packages or []))
    else:
        top = f"phalanx-{build.version}"
        name = f"{top}-linux-{platform.machine()}.tar.gz"
        data = package.tarball(members, links, top)
    path = out / name if out.is_dir() else out
    path.write_bytes(data)
    return f"{path}: {len(data) / MB:.1f} MB, {len(members)} files"


def write_prefix(build, prefix):
    members, links, _ = build.tree(with_system_libraries=False, libtorch_folder=str(build.libtorch_folder))
    package.write_folder(members, links, prefix)
    return f"{prefix}: Phalanx {build.version} for LibTorch {build.libtorch}, {len(members)} files"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=pathlib.Path, help="the folder to install into")
    parser.add_argument("--format", choices=["deb", "tar"], help="writes a package instead")
    parser.add_argument("--out", type=pathlib.Path, default=".", help="where to write the package: a file or a folder (.)")
    arguments = parser.parse_args()
    if bool(arguments.prefix) == bool(arguments.format):
        parser.error("either --prefix or --format is needed")
    caller = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    try:
        build = Build(pathlib.Path.cwd())
        if arguments.format:
            print(write_package(build, arguments.format, caller / arguments.out))
        else:
            print(write_prefix(build, caller / arguments.prefix.expanduser()))
    except bundle.Refusal as refusal:
        sys.exit(f"install: {refusal}")
    except OSError as error:
        sys.exit(f"install: {error}")


if __name__ == "__main__":
    main()
