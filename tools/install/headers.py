#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds the headers that are installed: the public ones, and headers of the repository that they include.

    tools/install/headers.py          compares them with installed_headers.txt
    tools/install/headers.py --write  writes that list

The list is part of the library's interface, so that a change that makes it longer is seen.
"""

import pathlib
import re
import sys

PUBLIC = ["phalanx/mpi.h", "phalanx/phalanx.h"]  # phalanx.h includes all but mpi.h, which needs MPI
LIST = "tools/install/installed_headers.txt"
_INCLUDE = re.compile(r'^([ \t]*#[ \t]*include[ \t]*)(?:"([^"]+)"|<([^>]+)>)', re.M)


def closure(root):
    """Returns the paths of all headers, sorted, and {included name: [paths that include it]} of other projects' headers."""
    left, own, others = list(PUBLIC), set(PUBLIC), {}
    while left:
        path = left.pop()
        for _, quoted, angled in _INCLUDE.findall((root / path).read_text()):
            if quoted and (root / quoted).is_file():
                if quoted not in own:
                    own.add(quoted)
                    left.append(quoted)
            else:
                others.setdefault(quoted or angled, []).append(path)
    return sorted(own), others


def listed(root):
    return (root / LIST).read_text().split()


def installed_path(path):
    """Returns the path under include/ of a header of the repository."""
    return path if path.startswith("phalanx/") else f"phalanx/{path}"


def rewrite(root, text):
    """Returns the text of a header with the names under which its includes are installed."""
    def new_name(match):
        name = match[2]
        return f'{match[1]}"{installed_path(name)}"' if name and (root / name).is_file() else match[0]
    return _INCLUDE.sub(new_name, text)


def main():
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    found, _ = closure(root)
    if sys.argv[1:] == ["--write"]:
        (root / LIST).write_text("".join(f"{path}\n" for path in found))
        return 0
    known = listed(root)
    for path in sorted(set(found) ^ set(known)):
        print(f"{LIST}: {path} is {'missing' if path in found else 'not included by any public header'}")
    return int(found != known)


if __name__ == "__main__":
    sys.exit(main())
