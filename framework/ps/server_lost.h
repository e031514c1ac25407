// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/base/error.h"

namespace phalanx::ps {

/// A server with which clients would wait (ClientOptions::retry) cannot be reached, has not come back in time, or has
/// come back without its tables. Unlike the loss of a rank, this is not reported by any other process.
class ServerLost : public CommError {
 public:
  explicit ServerLost(const std::string& message) : CommError(Kind::kPeerLost, message) {}
};

}  // namespace phalanx::ps
