#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Replaces ssh if hosts are network namespaces: agent.sh ADDRESS COMMAND... passes the command to a shell on the host
# PHALANX_LINK_HOST.
set -euo pipefail
while [[ $1 == -* ]]; do shift; done  # options of ssh
shift
exec ip netns exec "$PHALANX_LINK_HOST" unshare --uts sh -c 'hostname host-b && exec sh -c "$0"' "$*"
