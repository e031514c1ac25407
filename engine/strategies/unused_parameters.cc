// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/unused_parameters.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "framework/parallel/padding_rows.h"

namespace phalanx {

UnusedParameters::UnusedParameters(const std::vector<DataParallelGroup>& groups, const Predicate& always_used) {
  for (const auto& of : groups) {
    auto& member = *members_.emplace_back(std::make_unique<Member>());
    for (const auto& bucket : of.parameters.buckets()) {
      for (std::size_t i = 0; i < bucket.parameters.size(); ++i) {
        const auto& name = bucket.segments[i].name;
        const std::size_t number = member.names.size();
        if (always_used(name) || !bucket.parameters[i].requires_grad()) member.always.push_back(number);
        numbers_[name] = {&member, number};
        member.names.push_back(name);
      }
    }
    member.used.assign(member.names.size(), 0);
    member.last.assign(member.names.size(), 1);
    member.ballot = at::zeros({1}, at::kLong);
    look_at(of.parameters);
  }
}

void UnusedParameters::look_at(const FlatParameters& parameters) {
  std::vector<std::vector<std::pair<Member*, std::size_t>>> at;  // by bucket
  for (const auto& bucket : parameters.buckets()) {
    auto& numbers = at.emplace_back();
    for (const auto& segment : bucket.segments) numbers.push_back(numbers_.at(segment.name));
  }
  const auto arrived = [at = std::move(at)](std::size_t bucket, std::size_t i) {
    const auto [member, number] = at[bucket][i];
    member->any = true;
    if (!PaddingRows::current()) std::atomic_ref(member->used[number]).store(1, std::memory_order_relaxed);
  };
  hooks_.push_back(std::make_unique<ParameterHooks>(parameters, arrived));
}

void UnusedParameters::add_always_used(Member& member) {
  for (const auto number : member.always) member.used[number] = 1;
}

void UnusedParameters::keep_recorded() {
  for (const auto& member : members_) {
    add_always_used(*member);
    member->recorded = member->used;
  }
}

void UnusedParameters::skip_step() {
  for (const auto& member : members_) member->any = true;
}

bool UnusedParameters::all_used_here() const {
  return std::ranges::all_of(members_, [](const auto& member) { return std::ranges::count(member->last, 0) == 0; });
}

void UnusedParameters::agree(const std::vector<CommunicatorPtr>& combined) {
  names_.clear();
  for (std::size_t i = 0; i < members_.size(); ++i) agree(*members_[i], combined.at(i).get());
}

void UnusedParameters::agree(Member& member, Communicator* combined) {
  add_always_used(member);
  if (member.any.exchange(false)) {
    member.last = member.used;
  } else if (!member.recorded.empty()) {
    member.last = member.recorded;
  }
  std::ranges::fill(member.used, 0);
  auto* const ballot = member.ballot.mutable_data_ptr<std::int64_t>();
  *ballot = std::ranges::count(member.last, 0) > 0 ? 1 : 0;
  const bool alone = combined == nullptr || combined->size() == 1;
  if (!alone) combined->all_reduce(member.ballot, Reduction::kMax).wait();
  if (*ballot == 0) return;
  const at::Tensor of_all = at::tensor(member.last, at::kLong);
  if (!alone) combined->all_reduce(of_all, Reduction::kMax).wait();
  const auto* const used = of_all.const_data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < member.names.size(); ++i) {
    if (used[i] == 0) names_.insert(member.names[i]);
  }
}

}  // namespace phalanx
