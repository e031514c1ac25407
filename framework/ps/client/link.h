// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "framework/ps/client/request.h"

namespace phalanx::ps {

/// A client's end of the connection to the server that leads one part of the tables. Thread-safe.
class Link {
 public:
  Link() = default;
  virtual ~Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Assigns an id to the request and sends as much of it as is possible at once.
  virtual void send(const RequestPtr& request) = 0;

  /// Blocks until the request is finished and throws its error, if any.
  virtual void wait(const RequestPtr& request) = 0;
  virtual bool done(const RequestPtr& request) = 0;

  /// Registers the name of table `number`. If the server comes back after a restart, the link asks it for the version
  /// of every registered table.
  virtual void register_table(std::uint32_t number, const std::string& name) = 0;
  virtual void unregister_table(std::uint32_t number) = 0;
  virtual void unregister_tables() = 0;

  /// Returns how many acknowledged updates of registered tables were lost because the server resumed from an older
  /// checkpoint. Only updates that this client knows of are counted.
  virtual std::int64_t lost_updates() = 0;

  /// Returns true if the connection has ended and is not made again. Never blocks.
  virtual bool is_lost() = 0;

  /// Tells the server that the client leaves, and waits for its answer for up to a second.
  virtual void leave() = 0;
};

}  // namespace phalanx::ps
