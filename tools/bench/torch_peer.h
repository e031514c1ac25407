// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::bench {

/// The text of torch_peer.py, so that bench needs no file beside it.
extern const char* const kTorchPeer;

}  // namespace phalanx::bench
