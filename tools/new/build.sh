#!/usr/bin/env bash
# Builds libtiny.so. Run it again whenever Phalanx or LibTorch is another version.
set -euo pipefail
cd "$(dirname "$0")"
PHALANX=${PHALANX:-@PHALANX@}
LIBTORCH=${LIBTORCH:-@LIBTORCH@}
"${CXX:-g++}" -std=c++20 -O2 -fPIC -shared -Wall -Wextra -DAT_PER_OPERATOR_HEADERS \
  -I"$PHALANX" -isystem "$LIBTORCH/include" -isystem "$LIBTORCH/include/torch/csrc/api/include" \
  tiny.cc "$PHALANX/framework/base/plugin_stamp.cc" -o libtiny.so
