#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stands in for ssh where hosts are network namespaces: agent.sh ADDRESS COMMAND... runs the command, of which the words
# are for a shell, on the host PHALANX_LINK_HOST.
set -euo pipefail
while [[ $1 == -* ]]; do shift; done  # options of ssh
shift
exec ip netns exec "$PHALANX_LINK_HOST" unshare --uts sh -c 'hostname host-b && exec sh -c "$0"' "$*"
