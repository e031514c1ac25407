#include "framework/ps/dense_shard.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string>
#include <utility>

#include "framework/base/config/config.h"

namespace phalanx::ps {
namespace {

constexpr std::size_t kStalenessPlaces = 64;

}  // namespace

DenseShard::DenseShard(const TableSpec& spec, int shard, int shards)
    : spec_(spec),
      values_(at::zeros({elements_of_shard(spec, shard, shards)}, dtype_of(spec.dtype))),
      clocks_(spec.clients),
      staleness_seen_(kStalenessPlaces) {
  for (const auto& text : spec.rules) {
    auto rule = config::load_as<UpdateRules::Choice>("rules", text, "table " + spec.name).make();
    rule->attach(values_);
    rules_.push_back(std::move(rule));
  }
}

void DenseShard::push(const Push& push, const at::Tensor& update) {
  const std::int64_t staleness = std::max<std::int64_t>(0, version_ - push.based_on);
  rules_[push.rule]->apply(update,
                           {.client = push.client, .staleness = staleness, .clock = push.clock, .scale = push.scale});
  ++version_;
  if (!push.ticks) return;
  clocks_.tick(push.client, push.clock);
  let_all_read_that_may();
}

bool DenseShard::may_read(std::int64_t clock) const {
  return spec_.staleness == kAsynchronous || clocks_.slowest() >= clock - spec_.staleness;
}

void DenseShard::let_read(const Waiting& waiting) {
  const std::int64_t behind = std::max<std::int64_t>(0, waiting.clock - clocks_.slowest());
  ++staleness_seen_[std::min<std::size_t>(behind, kStalenessPlaces - 1)];
  for (const auto& rule : rules_) rule->read_by(waiting.client);
  waiting.read(behind);
}

void DenseShard::let_all_read_that_may() {
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto waiting = next++;
    if (!may_read(waiting->clock)) continue;
    let_read(*waiting);
    waiting_.erase(waiting);
  }
}

void DenseShard::pull(int client, std::int64_t clock, Read read) {
  clocks_.join(client, clock);
  Waiting waiting{.client = client, .clock = clock, .read = std::move(read)};
  if (may_read(clock)) {
    let_read(waiting);
  } else {
    waiting_.push_back(std::move(waiting));
  }
}

void DenseShard::leave(int client) {
  std::erase_if(waiting_, [client](const Waiting& waiting) { return waiting.client == client; });
  clocks_.leave(client);
  let_all_read_that_may();
}

StateDict DenseShard::state() {
  StateDict all{{"values", values_}};
  for (std::size_t i = 0; i < rules_.size(); ++i) append(all, "rule" + std::to_string(i) + "/", rules_[i]->state());
  return all;
}

}  // namespace phalanx::ps
