// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/nccl/outbox.h"

#include <utility>

#include "framework/backends/nccl/collectives.h"
#include "framework/backends/nccl/connect.h"

namespace phalanx::nccl {

Outbox::Outbox(Setup setup) : MessageLink(std::move(setup), true) { start(); }
Outbox::~Outbox() { stop(); }

// Does not wait for the receiver: it may wait for this rank, in a group that knows nothing of this message.
void Outbox::tell(const at::Tensor& bytes) {
  while (!told_.empty() && told_.front().done()) told_.pop_front();
  told_.push_back(setup().host->send(bytes, setup().peer, kLinkTag));
}

void Outbox::serve() {
  MessagePtr message;
  {
    const std::lock_guard lock(mutex_);
    message = posted_.front();
  }
  const Header header{.tag = message->call().tag, .bytes = static_cast<std::int64_t>(message->bytes())};
  if (!is_connected()) {
    const ncclUniqueId id = make_id();
    tell(bytes_of(&id, sizeof(id)));
    tell(bytes_of(&header, sizeof(header)));
    connect(id);
  } else {
    tell(bytes_of(&header, sizeof(header)));
  }
  const at::Tensor tensor = message->tensor();
  message->take();
  Work work = group().launch(
      message->call(), {tensor},
      {.calls = [&](ncclComm_t comm, cudaStream_t stream) { send_bytes({comm, stream, 0, 2}, tensor, 1); },
       .after = [](ncclComm_t, cudaStream_t) {}},
      message->origin());
  const std::lock_guard lock(mutex_);
  posted_.pop_front();
  message->launched(std::move(work));
}

}  // namespace phalanx::nccl
