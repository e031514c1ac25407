// SPDX-License-Identifier: Apache-2.0
// ZeRO stage 3 (Rajbhandari et al. 2020, arXiv:1910.02054, section 5.3), by blocks of the model as in FSDP (Zhao et al.
// 2023, PyTorch FSDP, arXiv:2304.11277, section 3). Between steps a rank has its part of each bucket's values,
// gradients and optimizer state, 1 / P of all three. A bucket holds parameters of one block.
//
//   forward    a block's buckets are gathered before it, while the previous block computes, and released after it
//   backward   they are gathered again while backward is in the following block; when backward has left the block, they
//              are released, and the gradients are reduce-scattered and freed
//
// A bucket with parameters of several blocks (tied embeddings), or of no block, stays from the first block that uses it
// to the end of backward. The buckets of the last block of forward stay until backward has left the block.
// Backward is known to have left a block when it enters the next one. A hook on the gradient of a block's output
// reports that; before it runs, autograd has processed everything recorded later. Neither event depends on which
// parameters have gradients, so all ranks gather and reduce in the same order.
// Wire, for each backward: 3 (P - 1) / P of the values' bytes per rank, in two gathers and a reduction; without
// reshard_after_forward, 2 (P - 1) / P. A forward alone (evaluation): (P - 1) / P.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/strategies/initial_values.h"
#include "engine/strategies/sharded/gathered_bucket.h"
#include "engine/strategies/sharded/gradient_shards.h"
#include "engine/strategies/sharded/sharded_stages.h"
#include "framework/parallel/checkpointed.h"

namespace phalanx {
namespace {

class ShardedParameters final : public Strategy, private FreesGradients, private ShardsParameters {
 public:
  ShardedParameters(const StrategyContext& context, bool reshard_after_forward)
      : group_(context.group),
        local_gradients_(context.local_gradients),
        reshard_(reshard_after_forward),
        pool_(group_),
        shared_pool_(group_) {}

  std::vector<Slice> attach(const FlatParameters& parameters, Cut cut) override {
    broadcast_all(parameters, *group_);
    const auto& buckets = parameters.buckets();
    std::vector<Shards> shards;
    for (const auto& bucket : buckets) shards.emplace_back(whole(bucket), group_->size(), cut);
    gradients_.emplace(group_, parameters, shards, local_gradients_);
    std::vector<Slice> slices;
    units_.clear();
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const auto& shard = shards[i];
      const auto begin = shard.begin(group_->rank()), count = shard.count(group_->rank());
      const auto [first, last] = users(buckets[i]);
      auto& unit =
          units_.emplace_back(Unit{{buckets[i], shard, *group_, first == last ? pool_ : shared_pool_}, i, first, last});
      for (auto block = first; block <= last && block < blocks_.size(); ++block) blocks_[block].units.push_back(&unit);
      if (count > 0) slices.push_back({unit.values.own(), gradients_->shard(i), cut_of(buckets[i], begin, count)});
    }
    return slices;
  }

  void attach_state(const std::vector<StateTensor>&) override {}
  void reset() override {}

  void before_update(std::int64_t) override {}
  std::vector<CommunicatorPtr> gradient_groups() const override { return {group_}; }
  void after_update(std::int64_t) override {}
  bool replicas_equal() const override { return true; }
  void sum_over_slices(at::Tensor& sums) override { group_->all_reduce(sums, Reduction::kSum).wait(); }
  void gather_slices() override {}  // values are gathered when they are needed
  StateDict state() override { return {}; }
  void finish() override {}
  StrategyExtensions extensions() override { return {.frees_gradients = this, .shards_parameters = this}; }

  Metrics metrics() const override {
    double own = 0;
    for (const auto& unit : units_) own += static_cast<double>(unit.values.own().nbytes());
    return {{"value_shard_bytes", own},
            {"gradient_shard_bytes", gradients_ ? static_cast<double>(gradients_->bytes()) : 0},
            {"value_buffer_bytes", static_cast<double>(pool_.bytes() + shared_pool_.bytes())},
            {"gradient_buffer_bytes", gradients_ ? static_cast<double>(gradients_->buffer_bytes()) : 0}};
  }

 private:
  struct Unit {
    GatheredBucket values;
    std::size_t bucket;
    std::size_t first, last;  // blocks that use it

    bool shared() const { return first != last; }
  };
  struct Part {  // a block of the model
    std::set<std::string> parameters;
    std::vector<Unit*> units;
    bool recorded = false;  // forward has run, and backward has not reached the block yet
  };

  BlockRunner run_blocks(const std::vector<Block>& blocks) override {
    for (const auto& block : blocks) {
      numbers_[block.name] = blocks_.size();
      blocks_.push_back({.parameters = {block.parameters.begin(), block.parameters.end()}, .units = {}});
    }
    return [this](const Block& block, const at::Tensor& input) { return run(block, input); };
  }

  void after_backward() override {
    leave_block();
    for (auto& unit : units_) unit.values.release();
    for (auto& block : blocks_) block.recorded = false;
    gradients_->complete();
  }

  void with_full_parameters(const std::function<void()>& body) override {
    for (auto& unit : units_) unit.values.launch();
    for (auto& unit : units_) unit.values.wait();
    body();
    for (auto& unit : units_) unit.values.release();
  }

  void unshard() override {
    for (auto& unit : units_) unit.values.keep();
    for (auto& block : blocks_) block.units.clear();
    units_.clear();
  }

  static std::vector<Segment> cut_of(const Bucket& bucket, std::int64_t begin, std::int64_t count) {
    return phalanx::cut(bucket.segments, begin, count);
  }

  // Returns the first and the last block that use a bucket. A bucket that no block uses counts as used by all.
  std::pair<std::size_t, std::size_t> users(const Bucket& bucket) const {
    std::set<std::size_t> all;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const auto used = [&](const Segment& segment) { return blocks_[i].parameters.contains(segment.name); };
      if (std::ranges::any_of(bucket.segments, used)) all.insert(i);
    }
    if (all.empty()) return {0, blocks_.size()};
    return {*all.begin(), *all.rbegin()};
  }

  void launch(std::size_t block) {
    for (auto* const unit : blocks_[block].units) unit->values.launch();
  }

  void need(std::size_t block) {
    launch(block);
    for (auto* const unit : blocks_[block].units) unit->values.wait();
  }

  at::Tensor run(const Block& called, const at::Tensor& input) {
    const auto block = numbers_.at(called.name);
    const bool recording = at::GradMode::is_enabled();
    if (units_.empty()) return called.forward(input);
    if (recomputing()) leave_block();
    need(block);
    if (!recomputing() && block + 1 < blocks_.size()) launch(block + 1);
    at::Tensor output = called.forward(input);
    if (recording && output.requires_grad()) {
      blocks_[block].recorded = true;
      output.register_hook([this, block](const at::Tensor&) { enter_block(block); });
    }
    after_forward(block, recording);
    return output;
  }

  // Keeps the values of a recomputed block and of the last block, because backward follows immediately.
  void after_forward(std::size_t block, bool recording) {
    const bool stays = recording && (!reshard_ || recomputing() || block + 1 == blocks_.size());
    for (auto* const unit : blocks_[block].units) {
      const bool done = unit->shared() ? !recording && block == std::min(unit->last, blocks_.size() - 1) : !stays;
      if (done) unit->values.release();
    }
  }

  void enter_block(std::size_t block) {
    if (inside_ == block) return;
    leave_block();
    inside_ = block;
    need(block);
    if (block > 0 && blocks_[block - 1].recorded) launch(block - 1);
  }

  void leave_block() {
    if (!inside_) return;
    auto& block = blocks_[*std::exchange(inside_, std::nullopt)];
    block.recorded = false;
    for (auto* const unit : block.units) {
      if (unit->shared()) continue;
      unit->values.release();
      gradients_->reduce(unit->bucket);
    }
  }

  CommunicatorPtr group_;
  GradientShards::LocalGradients local_gradients_;
  bool reshard_;
  BufferPool pool_, shared_pool_;
  std::map<std::string, std::size_t> numbers_;  // indices of the blocks
  std::vector<Part> blocks_;
  std::deque<Unit> units_;  // by bucket
  std::optional<GradientShards> gradients_;
  std::optional<std::size_t> inside_;  // the block that backward is in
};

}  // namespace

std::unique_ptr<Strategy> make_sharded_parameters(const StrategyContext& context, bool reshard_after_forward) {
  return std::make_unique<ShardedParameters>(context, reshard_after_forward);
}

}  // namespace phalanx
