// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/store/store_session.h"

#include <sys/socket.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/sockets.h"

namespace phalanx {

std::optional<StoreRequest> StoreSession::receive() {
  if (part_ == Part::kHandshake && !shake_hands()) return {};
  if (part_ == Part::kHeader) {
    if (!fill(sizeof(RequestHeader))) return {};
    read_header();
  }
  const std::size_t value_bytes = header_.verb == StoreVerb::kSet ? static_cast<std::size_t>(header_.argument) : 0;
  if (!fill(header_.key_bytes + value_bytes)) return {};
  part_ = Part::kHeader;
  const std::string body = std::exchange(input_, {});  // frees the memory of a long value
  return StoreRequest{
      .header = header_, .key = body.substr(0, header_.key_bytes), .value = body.substr(header_.key_bytes)};
}

// Returns true once input_ has `bytes` bytes. The next part then starts with none.
bool StoreSession::fill(std::size_t bytes) {
  input_.resize(bytes);
  while (received_ < bytes) {
    const ssize_t count = ::recv(socket_.get(), input_.data() + received_, bytes - received_, 0);
    if (count == 0) throw Error("the peer has closed the connection");
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && not_ready()) return false;
    if (count < 0) throw Error(std::strerror(errno));
    received_ += static_cast<std::size_t>(count);
  }
  received_ = 0;
  return true;
}

// Returns true once the peer is admitted. A peer that speaks another protocol is refused at its first bytes, however
// few they are.
bool StoreSession::shake_hands() {
  while (const std::size_t bytes = handshake_.next_bytes()) {
    const bool complete = fill(bytes);
    if (!handshake_.fits(std::string_view(input_).substr(0, complete ? bytes : received_))) {
      throw Error("its greeting is not that of a rank with the job's secret (PHALANX_JOB_SECRET)");
    }
    if (!complete) return false;
    send(handshake_.answer(input_));
  }
  if (handshake_.refused()) throw Error("it does not know the job's secret (PHALANX_JOB_SECRET)");
  part_ = Part::kHeader;
  return true;
}

void StoreSession::read_header() {
  std::memcpy(&header_, input_.data(), sizeof(header_));
  const auto verb = header_.verb;
  if (verb != StoreVerb::kSet && verb != StoreVerb::kGet && verb != StoreVerb::kAdd) {
    throw Error("it sent an unknown request");
  }
  if (header_.key_bytes > kMaxKeyBytes) throw Error("it sent a key that is too long");
  if (verb == StoreVerb::kSet &&
      (header_.argument < 0 || header_.argument > static_cast<std::int64_t>(kMaxValueBytes))) {
    throw Error("it sent a value that is too long");
  }
  part_ = Part::kBody;
}

void StoreSession::reply(const ReplyHeader& header, std::string_view value) {
  std::string text(reinterpret_cast<const char*>(&header), sizeof(header));
  text += value;
  send(text);
}

void StoreSession::send(std::string_view text) {
  output_ += text;
  flush();
}

void StoreSession::flush() {
  while (has_output()) {
    const ssize_t count = ::send(socket_.get(), output_.data() + written_, output_.size() - written_, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && not_ready()) return;
    if (count < 0) throw Error(std::strerror(errno));
    written_ += static_cast<std::size_t>(count);
  }
  output_.clear();
  written_ = 0;
}

}  // namespace phalanx
