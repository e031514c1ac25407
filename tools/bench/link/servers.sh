#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs servers.py with the program that was built with it.
set -euo pipefail
here=tools/bench/link
export PYTHONPATH=$PWD/tools/virtual_cluster
PHALANX_LINK_SERVERS=$(realpath "$here/served") exec python3 "$(realpath "$here/servers.py")" "$@"
