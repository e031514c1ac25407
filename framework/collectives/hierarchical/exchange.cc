// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/hierarchical/exchange.h"

#include <ATen/ops/empty_like.h>

#include <utility>

#include "framework/base/parts.h"

namespace phalanx::hierarchical {
namespace {

constexpr int kScatterTag = kMaxTag + 1;
constexpr int kGatherTag = kMaxTag + 2;

}  // namespace

Exchange::Exchange(CommunicatorPtr inter, const at::Tensor& slice, Reduction op)
    : inter_(std::move(inter)),
      slice_(slice),
      op_(std::move(op)),
      counts_(nearly_equal_counts(slice.numel(), inter_->size())),
      parts_(counts_, inter_->size(), slice.numel()),
      own_(part(inter_->rank())) {}

void Exchange::scatter() {
  received_.resize(static_cast<std::size_t>(inter_->size()));
  for (int rank = 0; rank < inter_->size(); ++rank) {
    received_[rank] = rank == inter_->rank() ? own_ : at::empty_like(own_);
    if (rank == inter_->rank()) continue;
    messages_.push_back(inter_->recv(received_[rank], rank, kScatterTag));
    messages_.push_back(inter_->send(part(rank), rank, kScatterTag));
  }
}

// Combines into the data from the first rank, so that lower ranks come before higher ones.
void Exchange::combine() {
  wait_for_messages();
  const at::Tensor& result = received_.front();
  for (std::size_t rank = 1; rank < received_.size(); ++rank) {
    op_.combine(own_.scalar_type(), result.mutable_data_ptr(), received_[rank].const_data_ptr(), own_.numel());
  }
  if (inter_->rank() != 0) own_.copy_(result);
  received_.clear();
}

void Exchange::gather() {
  for (int rank = 0; rank < inter_->size(); ++rank) {
    if (rank == inter_->rank()) continue;
    messages_.push_back(inter_->recv(part(rank), rank, kGatherTag));
    messages_.push_back(inter_->send(own_, rank, kGatherTag));
  }
}

void Exchange::wait() { wait_for_messages(); }

void Exchange::wait_for_messages() {
  for (auto& message : messages_) message.wait();
  messages_.clear();
}

}  // namespace phalanx::hierarchical
