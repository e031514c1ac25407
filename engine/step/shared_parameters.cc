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
    if (!lent_to(group)) continue;
    for (const auto& parameter : group.parameters) parameter.mutable_grad() = at::zeros_like(parameter);
  }
}

void SharedParameters::before_step() {
  if (updates_ != Updates::kAlike) sent_ = take_first_values();
}

void SharedParameters::lend() const {
  if (!lends()) return;
  auto sent = take_first_values();
  wait_all(sent);
}

// Sends or receives the values of the first rank. Returns its sends.
std::vector<Work> SharedParameters::take_first_values() const {
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

void SharedParameters::add_up_gradients() {
  wait_all(sent_);
  sent_.clear();
  for (const auto& group : groups_) {
    for (const auto& parameter : group.parameters) {
      const at::Tensor& gradient = parameter.grad();
      if (updates_ != Updates::kOnceAsOne) add_up(group, gradient);
      if (lent_to(group)) gradient.zero_();
    }
  }
}

void SharedParameters::add_up(const Group& group, const at::Tensor& gradient) const {
  at::Tensor sum = gradient.contiguous();
  if (updates_ == Updates::kOnce) {
    group.ranks->reduce(sum, Reduction::kSum, 0).wait();
  } else {
    group.ranks->all_reduce(sum, Reduction::kSum).wait();
  }
  if (!gradient.is_contiguous() && !lent_to(group)) gradient.copy_(sum);
}

}  // namespace phalanx
