#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs uneven.py with the program that was built with it.
set -euo pipefail
exec python3 "$(realpath tools/bench/uneven/uneven.py)" --train "$(realpath tools/train)" "$@"
