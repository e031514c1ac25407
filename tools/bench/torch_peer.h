// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::bench {

/// The text of torch_peer.py, which is embedded so that bench needs no file at run time.
extern const char* const kTorchPeer;

}  // namespace phalanx::bench
