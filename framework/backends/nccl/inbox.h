// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>

#include "framework/backends/nccl/message_link.h"

namespace phalanx::nccl {

/// The messages from a peer to this rank. NCCL has no tags: the bytes of two ranks arrive in the order in which they
/// are sent. So before each message the peer tells its tag and size, through the host. The message goes to the first
/// receive of this tag. If none is posted, it goes to memory of its own, from which a later receive copies it; and if
/// the receive has another size, that is a mismatch, and the message is dropped. The link looks for messages only while
/// a receive is posted.
class Inbox final : public MessageLink {
 public:
  explicit Inbox(Setup setup);
  ~Inbox() override;

 private:
  // A message that no receive had asked for when it came.
  struct Unexpected {
    std::int64_t tag;
    at::Tensor bytes;
  };

  void serve() override;
  bool take_at_once(const MessagePtr& message) override;
  std::string hint() const override;

  void hear(void* data, std::size_t size);
  MessagePtr take_posted(std::int64_t tag);
  Work receive(const at::Tensor& tensor, const Call& call, const Group::Origin& origin);
  at::Tensor receive_aside(const Header& header);

  std::deque<Unexpected> unexpected_;
  std::deque<Work> aside_;  // receives into memory of the inbox
};

}  // namespace phalanx::nccl
