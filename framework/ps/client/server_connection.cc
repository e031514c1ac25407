// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/client/server_connection.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/ps/protocol/checksum.h"

namespace phalanx::ps {
namespace {

constexpr std::uint64_t kMaxThroughSocket = 4096;  // larger values are accessed in memory if possible

}  // namespace

void ServerConnection::open(HandshakeResult server) {
  server_ = std::move(server);
  record_reply();
  ping_ = nullptr;
}

void ServerConnection::transmit(Request& request) {
  Message sent{.header = request.message.header, .text = request.message.text};
  const Transfer& transfer = request.transfer;
  sent.header.flags &= static_cast<std::uint8_t>(~kInMemory);  // this may differ from an earlier transmission
  sent.header.address = 0;
  if (request.tensor.defined()) {
    sent.header.dtype = static_cast<std::uint8_t>(transfer.dtype);
    sent.header.payload_bytes = transfer.sent;
    // A leader that was wrongly believed lost must not write into memory that is no longer expecting it.
    const bool may_write = !replicated_ || transfer.returned == 0;
    if (reaches_memory() && may_write && std::max(transfer.sent, transfer.returned) > kMaxThroughSocket) {
      sent.header.flags |= kInMemory;
      sent.header.address = reinterpret_cast<std::uintptr_t>(request.tensor.const_data_ptr());
    } else {
      sent.payload = sent_by(request);
    }
    if (checksums_) sent.header.set_sum(checksum_of(sent_by(request)));
  }
  request.message.header = sent.header;
  channel().send(std::move(sent));
}

RequestPtr ServerConnection::due_ping() {
  const auto now = Clock::now();
  const auto failover = duration_of(failover_);
  if (now - last_reply_at_ < failover / 2) return nullptr;
  if (ping_ && ping_->finished) ping_ = nullptr;
  if (ping_ && now - pinged_at_ >= failover) {
    throw Error("it has not answered for " + format_text("%g", Seconds(now - last_reply_at_).count()) + " s");
  }
  if (ping_) return nullptr;
  ping_ = std::make_shared<Request>();
  ping_->message.header.verb = Verb::kPing;
  ping_->what = "check that it is alive";
  pinged_at_ = now;
  return ping_;
}

}  // namespace phalanx::ps
