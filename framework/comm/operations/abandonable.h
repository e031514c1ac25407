// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/base/error.h"

namespace phalanx {

/// Optional interface of a Work::State, for operations that must not be waited for while an exception unwinds the
/// stack, because they may complete only if this rank goes on: a peer may send the message, or take part in the
/// collective, only after it has received another message, which this rank does not send any more.
class Abandonable {
 public:
  virtual ~Abandonable() = default;

  /// Ends this rank's part in the operation, unless it is complete. Waits at most for what a peer does whatever this
  /// rank does, such as taking a message that was sent. If that is not enough, this rank leaves the group of the
  /// operation: peers that wait for it there get CommError::kPeerLost, and so do its own later calls.
  virtual void abandon() = 0;
};

/// Returns the error with which an abandoned operation breaks its group on this rank. `where` names the operation.
inline CommError abandoned(const std::string& where) {
  return {CommError::Kind::kPeerLost, where + ": this rank has left the group because of another exception"};
}

}  // namespace phalanx
