// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/base/error.h"

namespace phalanx::ps {

/// A server that clients were to wait for (ClientOptions::retry) cannot be reached, or has not come back in time, or
/// not as what it was. Unlike a rank that is lost, nobody else reports that.
class ServerLost : public CommError {
 public:
  explicit ServerLost(const std::string& message) : CommError(Kind::kPeerLost, message) {}
};

}  // namespace phalanx::ps
