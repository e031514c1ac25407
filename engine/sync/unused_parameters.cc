#include "engine/sync/unused_parameters.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "framework/parallel/padding_rows.h"

namespace phalanx {

UnusedParameters::UnusedParameters(const std::vector<ReplicaGroup>& groups, const Predicate& always_used) {
  for (const auto& of : groups) {
    auto& member = *members_.emplace_back(std::make_unique<Member>());
    member.group = of.group;
    for (const auto& bucket : of.parameters.buckets()) {
      auto& numbers = member.at.emplace_back();
      for (std::size_t i = 0; i < bucket.parameters.size(); ++i) {
        const auto& name = bucket.segments[i].name;
        numbers.push_back(member.names.size());
        if (always_used(name) || !bucket.parameters[i].requires_grad()) member.always.push_back(numbers.back());
        member.names.push_back(name);
      }
    }
    member.used.assign(member.names.size(), 0);
    member.last.assign(member.names.size(), 1);
    member.ballot = at::zeros({1}, at::kLong);
    member.hooks = std::make_unique<ParameterHooks>(of.parameters, [&member](std::size_t bucket, std::size_t i) {
      member.any = true;
      if (!PaddingRows::current()) member.used[member.at[bucket][i]] = 1;
    });
  }
}

void UnusedParameters::agree() {
  names_.clear();
  for (auto& member : members_) agree(*member);
}

void UnusedParameters::agree(Member& member) {
  for (const auto number : member.always) member.used[number] = 1;
  if (member.any.exchange(false)) member.last = member.used;
  std::ranges::fill(member.used, 0);
  auto* const ballot = member.ballot.mutable_data_ptr<std::int64_t>();
  *ballot = std::ranges::count(member.last, 0) > 0 ? 1 : 0;
  const bool alone = member.group->size() == 1;
  if (!alone) member.group->all_reduce(member.ballot, Reduction::kMax).wait();
  if (*ballot == 0) return;
  const at::Tensor of_all = at::tensor(member.last, at::kLong);
  if (!alone) member.group->all_reduce(of_all, Reduction::kMax).wait();
  const auto* const used = of_all.const_data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < member.names.size(); ++i) {
    if (used[i] == 0) names_.insert(member.names[i]);
  }
}

}  // namespace phalanx
