// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "framework/ps/client/link.h"
#include "framework/ps/client/link_options.h"

namespace phalanx::ps {

/// Makes the links of a rank's clients. Clients without such an object use SocketLink.
///
/// Threads: connect() must not be called by two threads at a time.
class Links {
 public:
  virtual ~Links() = default;

  /// Connects to a server. Throws LinkOptions::lost() if it cannot be reached or refuses this client.
  virtual std::shared_ptr<Link> connect(const LinkOptions& options) = 0;

  /// Returns true if the links lead to servers, which must have been started, and false if something else answers.
  virtual bool need_servers() const = 0;

  /// Returns true while a run restores a checkpoint whose values the tables have already, so that the clients need not
  /// write them: while a replay restores the checkpoint at which it begins.
  virtual bool tables_are_there() const = 0;
};

}  // namespace phalanx::ps
