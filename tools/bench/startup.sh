#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs startup.py with the train program that was built with it.
set -euo pipefail
here=tools/bench
PHALANX_TRAIN=$(realpath tools/train) exec python3 "$(realpath $here/startup.py)" "$@"
