// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::virtual_cluster {

/// The text of cluster.py, for `python3 -c`. Its argument is JSON: {"do": "up" and so on, options}.
extern const char* const kScript;

}  // namespace phalanx::virtual_cluster
