// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

struct MHD_Connection;
struct MHD_Response;

namespace phalanx {

/// Connections of an HttpServer that receive server-sent events. A connection that waits for an event is suspended, so
/// that it needs no thread. Thread-safe.
class EventStreams {
 public:
  EventStreams() = default;
  ~EventStreams() = default;
  EventStreams(const EventStreams&) = delete;
  EventStreams& operator=(const EventStreams&) = delete;

  /// Returns the response to a request for events, which begins with `first`; null if there is no memory, or after
  /// end().
  MHD_Response* open(MHD_Connection* connection, std::string first);

  /// Sends an event to all streams. A client that has not read the last kMaxUnread bytes is dropped.
  void send(std::string_view name, std::string_view data);
  static constexpr std::size_t kMaxUnread = std::size_t{1} << 20;

  /// Ends all streams. None may be suspended when the server is stopped.
  void end();

 private:
  struct Stream;

  static ssize_t read(void* stream, std::uint64_t position, char* buffer, std::size_t most);
  static void close(void* stream);
  void resume(Stream& stream);

  std::mutex mutex_;
  std::vector<Stream*> streams_;  // guarded by mutex_, and so are the streams; the server owns and closes them
  bool ended_ = false;            // guarded by mutex_
};

}  // namespace phalanx
