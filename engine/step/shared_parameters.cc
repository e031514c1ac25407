// SPDX-License-Identifier: Apache-2.0
#include "engine/step/shared_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

namespace phalanx {
namespace {

constexpr int kValuesTag = kMaxTag - 2;  // above the tags of activations

}  // namespace

SharedParameters::SharedParameters(std::vector<Group> groups, Updates updates)
    : groups_(std::move(groups)), updates_(updates) {
  for (const auto& group : groups_) {
    if (!updated_elsewhere(group)) continue;
    for (const auto& parameter : group.parameters) parameter.mutable_grad() = at::zeros_like(parameter);
  }
}

bool SharedParameters::owner_updates() const {
  return updates_ == Updates::kOwnerWithSummedGradients || updates_ == Updates::kOwnerWithOwnGradients;
}

void SharedParameters::before_step(const Batch& /*batch*/) {
  if (updates_ != Updates::kReplicated) sent_ = exchange_values();
}

void SharedParameters::broadcast_from_owner() const {
  if (!owner_updates()) return;
  auto sent = exchange_values();
  wait_all(sent);
}

// Sends the values if this rank is the owner, and otherwise receives them. Returns the sends.
std::vector<Work> SharedParameters::exchange_values() const {
  const at::NoGradGuard no_grad;
  std::vector<Work> sent;
  for (const auto& [ranks, parameters] : groups_) {
    for (const auto& parameter : parameters) {
      at::Tensor values = parameter.detach().contiguous();
      for (int peer = 1; ranks->rank() == 0 && peer < ranks->size(); ++peer) {
        sent.push_back(ranks->send(values, peer, kValuesTag));
      }
      if (ranks->rank() == 0) continue;
      ranks->recv(values, 0, kValuesTag).wait();
      if (!parameter.is_contiguous()) parameter.detach().copy_(values);
    }
  }
  return sent;
}

void SharedParameters::after_backward() {
  wait_all(sent_);
  sent_.clear();
  for (const auto& group : groups_) {
    for (const auto& parameter : group.parameters) {
      const at::Tensor& gradient = parameter.grad();
      if (updates_ != Updates::kOwnerWithOwnGradients) sum_gradient(group, gradient);
      if (updated_elsewhere(group)) gradient.zero_();
    }
  }
}

void SharedParameters::sum_gradient(const Group& group, const at::Tensor& gradient) const {
  at::Tensor sum = gradient.contiguous();
  if (updates_ == Updates::kOwnerWithSummedGradients) {
    group.ranks->reduce(sum, Reduction::kSum, 0).wait();
  } else {
    group.ranks->all_reduce(sum, Reduction::kSum).wait();
  }
  if (!gradient.is_contiguous() && !updated_elsewhere(group)) gradient.copy_(sum);
}

}  // namespace phalanx
