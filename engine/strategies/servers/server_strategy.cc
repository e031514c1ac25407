// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/servers/server_strategy.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <string>
#include <utility>

#include "engine/strategies/by_parameter.h"
#include "engine/strategies/initial_values.h"
#include "framework/base/error.h"
#include "framework/base/log.h"

namespace phalanx {
namespace {

using SegmentsByBucket = std::vector<std::vector<Segment>>;

// Returns the centre and the state of the rules by parameter.
StateDict by_parameter(const std::vector<at::Tensor>& centre, const StateDict& rules,
                       const SegmentsByBucket& segments) {
  StateDict all;
  for (std::size_t i = 0; i < centre.size(); ++i) append_by_parameter(all, "centre/", centre[i], segments[i]);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const auto bucket = i / (rules.size() / centre.size());
    append_by_parameter(all, "servers/" + rules[i].name + "/", rules[i].values, segments[bucket]);
  }
  return all;
}

void remove_tables(const ps::ClientOptions& options) { ps::Client(options).clear(); }

}  // namespace

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

void ServerStrategy::before_update(std::int64_t) { fill_servers(); }

void ServerStrategy::fill_servers() {
  if (!servers_outdated_) return;
  tables_.set(centre_, rules_);
  servers_outdated_ = false;  // on all ranks, or on none if set() has lost one
  servers_were_set();
  const auto remove = std::exchange(remove_former_, nullptr);
  if (!remove || group_->rank() > 0) return;
  try {
    remove();
  } catch (const Error& error) {  // nobody reads tables of an earlier generation
    log_warning() << "tables of an earlier generation were not removed from parameter servers: " << error.what();
  }
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

// Ranks that have passed the barrier in BucketTables::set() may have pushed since then, so what they leave is newer
// than the centre in the memory of the others.
LeftCentre ServerStrategy::leave() {
  const at::NoGradGuard no_grad;
  const auto generation = service_.generation();
  left_ = true;
  LeftCentre left{.remove = [options = service_.options_for_later()] { remove_tables(options); }};
  if (servers_outdated_) {
    make_room_for_rules();
    left.order = 2 * generation;
    left.read = [all = by_parameter(centre_, rules_, segments_)] { return all; };
    if (remove_former_) {
      left.remove = [own = std::move(left.remove), former = std::move(remove_former_)] { own(), former(); };
    }
    return left;
  }
  left.order = 2 * generation + 1;
  left.on_servers = true;
  left.read = [read = tables_.reader(service_.options_for_later()), segments = segments_] {
    const auto contents = read();
    return by_parameter(contents.values, contents.state, segments);
  };
  try {
    if (!finished_) send_rest();
  } catch (const CommError& error) {
    log_warning() << "a parameter server is lost with the last updates of this rank: " << error.what();
  }
  return left;
}

StateDict ServerStrategy::state() {
  if (left_) return {};
  read_centre();
  StateDict all = by_parameter(centre_, rules_, segments_);
  append(all, "", own_state());
  return all;
}

void ServerStrategy::finish() {
  const at::NoGradGuard no_grad;
  fill_servers();
  send_rest();
  finished_ = true;
  tables_.pull_last(values_);
  for (const auto& state : state_) {
    if (state.kind == kMovingAverage) group_->all_reduce(state.values, Reduction::kMean).wait();
  }
}

}  // namespace phalanx
