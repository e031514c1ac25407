// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/gloo/loopback.h"

#include <utility>

namespace phalanx::gloo {

void Loopback::send(int tag, Payload payload) {
  const std::lock_guard lock(mutex_);
  Mailbox& box = mailboxes_[tag];
  if (box.readers.empty()) {
    box.payloads.push_back(std::move(payload));
  } else {
    box.readers.front().set_value(std::move(payload));
    box.readers.pop_front();
  }
}

std::future<Loopback::Payload> Loopback::recv(int tag) {
  std::promise<Payload> reader;
  auto payload = reader.get_future();
  const std::lock_guard lock(mutex_);
  Mailbox& box = mailboxes_[tag];
  if (box.payloads.empty()) {
    box.readers.push_back(std::move(reader));
  } else {
    reader.set_value(std::move(box.payloads.front()));
    box.payloads.pop_front();
  }
  return payload;
}

}  // namespace phalanx::gloo
