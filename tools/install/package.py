# SPDX-License-Identifier: Apache-2.0
"""Writes a tree of files into a folder, a tarball or a Debian package. The same tree always gives the same bytes.

A tree is {path: (content, is executable)} and {path: target} for symbolic links.
"""

import gzip
import hashlib
import io
import json
import os
import pathlib
import tarfile

MANIFEST = "lib/phalanx/manifest.json"  # has the paths of all files, as "files"


def write_folder(members, links, prefix):
    """Writes a tree, and removes the files of the version that was installed before."""
    old = prefix / MANIFEST
    before = set(json.loads(old.read_text())["files"]) if old.exists() else set()
    for path, (data, executable) in members.items():
        _replace(prefix / path, lambda new, data=data, mode=0o755 if executable else 0o644: _write(new, data, mode))
    for path, target in links.items():
        _replace(prefix / path, lambda new, target=target: new.symlink_to(target))
    for path in sorted(before - set(members) - set(links), reverse=True):
        (prefix / path).unlink(missing_ok=True)
        folder = (prefix / path).parent
        while folder != prefix and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent


def _replace(path, make):
    """Replaces a file by a new one, so that programs that use the old one keep it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    make(new)
    os.replace(new, path)


def _write(path, data, mode):
    path.write_bytes(data)
    path.chmod(mode)


def tarball(members, links, top):
    """Returns a tree below the folder `top` as the bytes of a .tar.gz."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, compresslevel=6) as stream:
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for folder in _folders([*members, *links]):
                archive.addfile(_entry(f"{top}/{folder}", tarfile.DIRTYPE, 0o755))
            for path, (data, executable) in sorted(members.items()):
                entry = _entry(f"{top}/{path}", tarfile.REGTYPE, 0o755 if executable else 0o644)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
            for path, target in sorted(links.items()):
                entry = _entry(f"{top}/{path}", tarfile.SYMTYPE, 0o777)
                entry.linkname = target
                archive.addfile(entry)
    return packed.getvalue()


def _folders(paths):
    return sorted({folder.as_posix() for path in paths for folder in pathlib.PurePosixPath(path).parents} - {"."})


def _entry(name, kind, mode):
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.uname, entry.gname = kind, mode, "root", "root"
    return entry


def debian_package(members, links, prefix, fields):
    """Returns a tree below the folder `prefix`, such as "usr", as the bytes of a .deb.

    `fields` are the fields of its control file, except Installed-Size.
    """
    size = sum(len(data) for data, _ in members.values())
    control = {**fields, "Installed-Size": str(size // 1024 + 1)}
    sums = "".join(f"{hashlib.md5(data).hexdigest()}  {prefix}/{path}\n" for path, (data, _) in sorted(members.items()))
    parts = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": tarball({"control": (_control(control), False), "md5sums": (sums.encode(), False)}, {}, "."),
        "data.tar.gz": tarball({f"{prefix}/{path}": member for path, member in members.items()},
                               {f"{prefix}/{path}": target for path, target in links.items()}, "."),
    }
    return b"!<arch>\n" + b"".join(_member_of_ar(name, data) for name, data in parts.items())


def _control(fields):
    return "".join(f"{name}: {value}\n" for name, value in fields.items()).encode()


def _member_of_ar(name, data):
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
    return head + data + b"\n" * (len(data) % 2)
