// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/grouped_strategy.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

namespace phalanx {

// The optimizers of all members. Each takes the gradients of its member's slices, and has no state.
class GroupedStrategy::MemberOptimizers final : public Optimizer {
 public:
  MemberOptimizers(std::vector<std::unique_ptr<Optimizer>> members, const std::vector<std::size_t>& slices)
      : members_(std::move(members)), slices_(slices) {}

  void attach(std::vector<Slice> slices) override {
    auto next = std::make_move_iterator(slices.begin());
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const auto end = next + static_cast<std::ptrdiff_t>(slices_.at(i));
      members_[i]->attach({next, end});
      next = end;
    }
  }

  void update() override {
    for (auto& member : members_) member->update();
  }

  void exclude(const std::set<std::string>& parameters) override {
    for (auto& member : members_) member->exclude(parameters);
  }

  double learning_rate() const override { return members_[0]->learning_rate(); }
  void set_learning_rate(double rate) override {
    for (auto& member : members_) member->set_learning_rate(rate);
  }
  std::int64_t updates() const override { return members_[0]->updates(); }
  void set_updates(std::int64_t updates) override {
    for (auto& member : members_) member->set_updates(updates);
  }

 private:
  std::vector<std::unique_ptr<Optimizer>> members_;
  const std::vector<std::size_t>& slices_;  // number of slices of each member
};

std::vector<Slice> GroupedStrategy::attach(const FlatParameters&, Cut cut) {
  std::vector<Slice> all;
  slices_.clear();
  for (auto& [of, strategy] : members_) {
    auto slices = strategy->attach(of.parameters, cut);
    slices_.push_back(slices.size());
    std::ranges::move(slices, std::back_inserter(all));
  }
  return all;
}

// Each strategy expects numbers that count only its own slices.
void GroupedStrategy::attach_state(const std::vector<StateTensor>& state) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < members_.size(); begin += slices_[i++]) {
    std::vector<StateTensor> own;
    for (auto tensor : state) {
      if (tensor.slice < begin || tensor.slice >= begin + slices_[i]) continue;
      tensor.slice -= begin;
      own.push_back(std::move(tensor));
    }
    members_[i].strategy->attach_state(own);
  }
}

void GroupedStrategy::reset() {
  for (auto& member : members_) member.strategy->reset();
}

void GroupedStrategy::before_update(std::int64_t step) {
  for (auto& member : members_) member.strategy->before_update(step);
}

std::vector<CommunicatorPtr> GroupedStrategy::gradient_groups() const {
  std::vector<CommunicatorPtr> all;
  for (const auto& member : members_) all.push_back(member.strategy->gradient_groups().at(0));
  return all;
}

void GroupedStrategy::after_update(std::int64_t step) {
  for (auto& member : members_) member.strategy->after_update(step);
}

bool GroupedStrategy::replicas_equal() const {
  return std::ranges::all_of(members_, [](const Member& member) { return member.strategy->replicas_equal(); });
}

void GroupedStrategy::sum_over_slices(at::Tensor& sums) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    at::Tensor own = sums.narrow(0, static_cast<std::int64_t>(i), 1);
    members_[i].strategy->sum_over_slices(own);
  }
}

void GroupedStrategy::gather_slices() {
  for (auto& member : members_) member.strategy->gather_slices();
}

// State that is the same on all ranks and named after a parameter has unique names on any mesh. All other state gets
// the number of its group as a prefix.
StateDict GroupedStrategy::state() {
  StateDict all;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    std::set<std::string> parameters;
    for (const auto& bucket : members_[i].of.parameters.buckets()) {
      for (const auto& segment : bucket.segments) parameters.insert(segment.name);
    }
    for (auto& one : members_[i].strategy->state()) {
      const bool named = one.alike && parameters.contains(one.name.substr(one.name.rfind('/') + 1));
      if (!named) one.name = "group" + std::to_string(i) + "/" + one.name;
      all.push_back(std::move(one));
    }
  }
  return all;
}

void GroupedStrategy::finish() {
  for (auto& member : members_) member.strategy->finish();
}

StrategyExtensions GroupedStrategy::extensions() {
  const auto all_have = [this](auto StrategyExtensions::* extension) {
    return std::ranges::all_of(
        members_, [extension](const Member& member) { return member.strategy->extensions().*extension != nullptr; });
  };
  return {.updates_on_servers = all_have(&StrategyExtensions::updates_on_servers) ? this : nullptr,
          .frees_gradients = all_have(&StrategyExtensions::frees_gradients) ? this : nullptr,
          .shards_parameters = all_have(&StrategyExtensions::shards_parameters) ? this : nullptr};
}

std::unique_ptr<Optimizer> GroupedStrategy::make_optimizer() {
  std::vector<std::unique_ptr<Optimizer>> optimizers;
  for (auto& member : members_)
    optimizers.push_back(member.strategy->extensions().updates_on_servers->make_optimizer());
  return std::make_unique<MemberOptimizers>(std::move(optimizers), slices_);
}

void GroupedStrategy::after_backward() {
  for (auto& member : members_) member.strategy->extensions().frees_gradients->after_backward();
}

// Nests the runners of the members: each one runs the blocks inside the runner before it.
BlockRunner GroupedStrategy::run_blocks(const std::vector<Block>& blocks) {
  BlockRunner all;
  for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
    BlockRunner own = member->strategy->extensions().shards_parameters->run_blocks(blocks);
    if (!all) {
      all = std::move(own);
      continue;
    }
    all = [own = std::move(own), inner = std::move(all)](const Block& block, const at::Tensor& input) {
      Block inside = block;
      inside.forward = [&](const at::Tensor& x) { return inner(block, x); };
      return own(inside, input);
    };
  }
  return all;
}

void GroupedStrategy::with_full_parameters(const std::function<void()>& body) {
  std::function<void()> all = body;
  for (auto& member : members_) {
    all = [inner = std::move(all), sharded = member.strategy->extensions().shards_parameters] {
      sharded->with_full_parameters(inner);
    };
  }
  all();
}

void GroupedStrategy::unshard() {
  for (auto& member : members_) member.strategy->extensions().shards_parameters->unshard();
}

Metrics GroupedStrategy::metrics() const { return members_.at(0).strategy->metrics(); }

}  // namespace phalanx
