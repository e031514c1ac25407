#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs Phalanx's tools with the LibTorch of this machine.

    phalanx --help
    phalanx train config.yaml

LibTorch is the folder in LIBTORCH, or else the one that Phalanx was built with, if it is there, or else that of the package
torch of the python3 that runs this script. The exit status is the tool's, or 2 if it cannot be run.
"""

import json
import os
import pathlib
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent.parent / "lib/phalanx"
sys.path.insert(0, str(HERE))
import run

WITHOUT_LIBTORCH = {"doctor", "download"}  # tools that are programs of their own


def main():
    manifest = json.loads((HERE / "manifest.json").read_text())
    program, words, environment = HERE / "bin/phalanx", sys.argv[1:], dict(os.environ)
    try:
        run.check_machine(manifest)
        if words and words[0] in WITHOUT_LIBTORCH:
            program, words = HERE / "bin" / words[0], words[1:]
        environment = run.with_libtorch(environment, run.find_libtorch(manifest["libtorch"], manifest["libtorch_folder"]))
    except run.Refusal as refusal:
        if program.name not in WITHOUT_LIBTORCH:
            print(f"phalanx: {refusal}", file=sys.stderr)
            return 2
    os.execve(program, [str(program), *words], environment)


if __name__ == "__main__":
    sys.exit(main())
