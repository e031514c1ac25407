#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs link.py with the rank program that was built with it.
set -euo pipefail
here=tools/bench/link
export PYTHONPATH=$PWD/tools/virtual_cluster
PHALANX_LINK_RANK=$(realpath "$here/rank") exec python3 "$(realpath "$here/link.py")" "$@"
