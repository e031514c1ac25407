#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the operators that LibTorch for CUDA has kernels for, as C++ string literals.

LibTorch's headers declare them: CUDA's own operators in *_cuda_dispatch.h, and operators for every device, which call
other operators, in *_composite*_dispatch.h. An operator that is in neither, such as one that only the CPU has, fails
on a GPU.
"""

import pathlib
import re
import sys

_HEADERS = ("_cuda_dispatch.h", "_compositeexplicitautograd_dispatch.h",
            "_compositeexplicitautogradnonfunctional_dispatch.h", "_compositeimplicitautograd_dispatch.h")

# A declaration such as "TORCH_API at::Tensor & add_out(at::Tensor & out, ...".
_DECLARED = re.compile(r"^TORCH_API [^(]*?(\w+)\(", re.M)


def functions(text):
    """Yields "add" for the functional form, "add_" for the one in place, and "add_out" for the one with results."""
    for name in _DECLARED.findall(text):
        name = name.replace("_symint", "")
        yield name[:-1] if name.endswith("_outf") else name


def main(headers):
    names = set()
    for header in map(pathlib.Path, headers):
        if header.name.endswith(_HEADERS):
            names.update(functions(header.read_text()))
    if len(names) < 1000:
        sys.exit(f"list_cuda_operators: only {len(names)} operators in {len(headers)} headers; LibTorch's headers have "
                 "another form than expected")
    for name in sorted(names):
        print(f'"{name}",')


if __name__ == "__main__":
    main(sys.argv[1:])
