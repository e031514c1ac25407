// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::bench_train {

extern const char* const kDdpPeer;  // ddp_models.py, parallel_peer.py and ddp_peer.py
extern const char* const kJaxPeer;  // jax_models.py and jax_peer.py

}  // namespace phalanx::bench_train
