// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include "framework/backends/nccl/message_link.h"

namespace phalanx::nccl {

/// The messages from this rank to a peer. They are sent in the order in which they were launched.
class Outbox final : public MessageLink {
 public:
  explicit Outbox(Setup setup);
  ~Outbox() override;

 private:
  void serve() override;
  void tell(const at::Tensor& bytes);

  std::deque<Work> told_;  // messages of the host
};

}  // namespace phalanx::nccl
