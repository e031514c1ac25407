// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/protocol/channel.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "framework/base/sockets.h"

namespace phalanx::ps {
namespace {

std::size_t bytes_of(const Message& message) {
  return sizeof(Header) + message.text.size() + message.header.streamed_bytes();
}

// Adds the part of [memory, memory + bytes) that has not been written yet, and subtracts the written part from
// `written`.
void add_rest(std::vector<iovec>& parts, std::size_t& written, const void* memory, std::size_t bytes) {
  const std::size_t skipped = std::min(written, bytes);
  written -= skipped;
  if (bytes == skipped) return;
  parts.push_back({const_cast<char*>(static_cast<const char*>(memory)) + skipped, bytes - skipped});
}

}  // namespace

void Channel::send(Message message) {
  message.header.text_bytes = static_cast<std::uint32_t>(message.text.size());
  queued_bytes_ += bytes_of(message);
  output_.push_back(std::move(message));
  if (output_.size() == 1) flush();
}

void Channel::flush() {
  while (!output_.empty()) {
    written_ += write_front();
    if (written_ < bytes_of(output_.front())) return;
    queued_bytes_ -= bytes_of(output_.front());
    output_.pop_front();
    written_ = 0;
  }
}

// Returns how many bytes of the first message the socket accepted. If these are not all the rest, the socket is full.
std::size_t Channel::write_front() {
  const Message& message = output_.front();
  std::size_t written = written_, total = 0;
  std::vector<iovec> parts;
  add_rest(parts, written, &message.header, sizeof(Header));
  add_rest(parts, written, message.text.data(), message.text.size());
  if (message.header.streamed_bytes() > 0) {
    add_rest(parts, written, message.payload.const_data_ptr(), message.header.streamed_bytes());
  }
  while (true) {
    msghdr what{};
    what.msg_iov = parts.data();
    what.msg_iovlen = parts.size();
    const ssize_t count = ::sendmsg(socket_.get(), &what, MSG_NOSIGNAL);
    if (count >= 0) return total + static_cast<std::size_t>(count);
    if (errno == EINTR) continue;
    if (not_ready()) return total;
    throw ConnectionError(std::strerror(errno));
  }
}

// Returns true if all bytes have arrived.
bool Channel::read_into(void* memory, std::size_t bytes) {
  while (read_ < bytes) {
    const ssize_t count = ::recv(socket_.get(), static_cast<char*>(memory) + read_, bytes - read_, 0);
    if (count == 0) throw ConnectionError("the connection was closed");
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && not_ready()) return false;
    if (count < 0) throw ConnectionError(std::strerror(errno));
    read_ += static_cast<std::size_t>(count);
  }
  read_ = 0;
  return true;
}

void Channel::check_header() const {
  const Header& header = input_.header;
  if (header.magic != kMagic) throw ConnectionError("received data that is not a message of a parameter server");
  if (header.protocol != kProtocol) {
    throw ConnectionError("the peer speaks version " + std::to_string(header.protocol) + " of the protocol, this is " +
                          std::to_string(kProtocol));
  }
  if (header.text_bytes > max_text_) {
    throw ConnectionError("received a text of " + std::to_string(header.text_bytes) + " bytes; at most " +
                          std::to_string(max_text_) + " are allowed");
  }
}

std::optional<Message> Channel::receive() {
  if (part_ == Part::kHeader) {
    if (!read_into(&input_.header, sizeof(Header))) return {};
    check_header();
    input_.text.resize(input_.header.text_bytes);
    part_ = Part::kText;
  }
  if (part_ == Part::kText) {
    if (!read_into(input_.text.data(), input_.text.size())) return {};
    if (input_.header.streamed_bytes() > 0) input_.payload = allocate_payload_(input_);
    part_ = Part::kPayload;
  }
  if (input_.header.streamed_bytes() > 0 &&
      !read_into(input_.payload.mutable_data_ptr(), input_.header.streamed_bytes())) {
    return {};
  }
  part_ = Part::kHeader;
  return std::exchange(input_, {});
}

}  // namespace phalanx::ps
