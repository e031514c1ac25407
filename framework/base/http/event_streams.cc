// SPDX-License-Identifier: Apache-2.0
#include "framework/base/http/event_streams.h"

#include <microhttpd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace phalanx {
namespace {

constexpr std::size_t kBlock = 16384;  // bytes that are passed on at a time

}  // namespace

struct EventStreams::Stream {
  EventStreams* all;
  MHD_Connection* connection;
  std::string unread;
  bool suspended = false;
  bool dropped = false;
};

MHD_Response* EventStreams::open(MHD_Connection* connection, std::string first) {
  static_assert(std::is_same_v<decltype(&EventStreams::read), MHD_ContentReaderCallback>);
  const std::lock_guard lock(mutex_);
  if (ended_) return nullptr;
  auto stream = std::make_unique<Stream>(
      Stream{.all = this, .connection = connection, .unread = std::move(first), .suspended = false, .dropped = false});
  MHD_Response* response = ::MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kBlock, &EventStreams::read,
                                                               stream.get(), &EventStreams::close);
  if (response != nullptr) streams_.push_back(stream.release());
  return response;
}

void EventStreams::send(std::string_view name, std::string_view data) {
  const std::lock_guard lock(mutex_);
  for (Stream* stream : streams_) {
    if (stream->unread.size() > kMaxUnread) stream->dropped = true;
    stream->unread.append("event: ").append(name).append("\ndata: ").append(data).append("\n\n");
    resume(*stream);
  }
}

void EventStreams::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  for (Stream* stream : streams_) resume(*stream);
}

void EventStreams::resume(Stream& stream) {
  if (std::exchange(stream.suspended, false)) ::MHD_resume_connection(stream.connection);
}

// Called by the server's thread when the client can take bytes.
ssize_t EventStreams::read(void* stream_of_server, std::uint64_t, char* buffer, std::size_t most) {
  auto& stream = *static_cast<Stream*>(stream_of_server);
  const std::lock_guard lock(stream.all->mutex_);
  if (stream.all->ended_ || stream.dropped) return MHD_CONTENT_READER_END_OF_STREAM;
  if (stream.unread.empty()) {
    ::MHD_suspend_connection(stream.connection);
    stream.suspended = true;
    return 0;
  }
  const std::size_t bytes = stream.unread.copy(buffer, most);
  stream.unread.erase(0, bytes);
  return static_cast<ssize_t>(bytes);
}

// Called by the server's thread when the connection has ended.
void EventStreams::close(void* stream_of_server) {
  const std::unique_ptr<Stream> stream(static_cast<Stream*>(stream_of_server));
  const std::lock_guard lock(stream->all->mutex_);
  std::erase(stream->all->streams_, stream.get());
}

}  // namespace phalanx
