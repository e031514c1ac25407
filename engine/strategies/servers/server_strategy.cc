// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/servers/server_strategy.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <utility>

#include "engine/strategies/by_parameter.h"
#include "engine/strategies/initial_values.h"

namespace phalanx {

std::vector<Slice> ServerStrategy::attach(const FlatParameters& parameters, Cut) {
  const at::NoGradGuard no_grad;
  auto slices = broadcast_all(parameters, *group_);
  values_.clear(), centre_.clear(), segments_.clear(), rules_.clear();
  for (const auto& bucket : parameters.buckets()) {
    values_.push_back(bucket.values);
    centre_.push_back(bucket.values.clone());
    segments_.push_back(bucket.segments);
  }
  tables_.attach(parameters);
  begin(values_);
  servers_were_set();
  return slices;
}

void ServerStrategy::reset() {
  const at::NoGradGuard no_grad;
  settle();
  for (std::size_t i = 0; i < values_.size(); ++i) centre_[i].copy_(values_[i]);
  begin(values_);
  make_room_for_rules();
  if (!servers_outdated_) tables_.read_state(rules_);
  servers_outdated_ = !service_.tables_are_there();
}

void ServerStrategy::before_update(std::int64_t) {
  if (!servers_outdated_) return;
  servers_outdated_ = false;
  tables_.set(centre_, rules_);
  servers_were_set();
}

void ServerStrategy::read_what_was_set() {
  std::vector<at::Tensor> centre;
  for (const auto& value : values_) centre.push_back(at::empty_like(value));
  auto works = tables_.pull(centre);
  wait_all(works);
  group_->barrier().wait();  // before any rank pushes
}

void ServerStrategy::make_room_for_rules() {
  if (rules_.empty()) rules_ = tables_.state_of_rules();
}

void ServerStrategy::read_centre() {
  settle();
  make_room_for_rules();
  if (!servers_outdated_) tables_.pull_last(centre_, rules_);
}

void ServerStrategy::follow_servers() {
  const at::NoGradGuard no_grad;
  read_centre();
  auto former = service_.follow_servers();
  tables_.follow();
  tables_.set(centre_, rules_);
  service_.leave(std::move(former));
  servers_outdated_ = false;
  servers_were_set();
}

StateDict ServerStrategy::state() {
  read_centre();
  StateDict all;
  for (std::size_t i = 0; i < centre_.size(); ++i) append_by_parameter(all, "centre/", centre_[i], segments_[i]);
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const auto bucket = i / (rules_.size() / centre_.size());
    append_by_parameter(all, "servers/" + rules_[i].name + "/", rules_[i].values, segments_[bucket]);
  }
  append(all, "", own_state());
  return all;
}

void ServerStrategy::finish() {
  const at::NoGradGuard no_grad;
  send_rest();
  tables_.pull_last(values_);
  for (const auto& state : state_) {
    if (state.kind == kMovingAverage) group_->all_reduce(state.values, Reduction::kMean).wait();
  }
}

}  // namespace phalanx
