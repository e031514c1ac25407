#include "engine/sync/grouped.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace phalanx {

std::vector<Slice> GroupedSynchronizer::attach(const FlatParameters&, Cut cut) {
  std::vector<Slice> all;
  slices_.clear();
  for (auto& [of, strategy] : members_) {
    auto slices = strategy->attach(of.parameters, cut);
    slices_.push_back(slices.size());
    std::ranges::move(slices, std::back_inserter(all));
  }
  return all;
}

// Each strategy knows its slices by their numbers among its own.
void GroupedSynchronizer::attach_state(const std::vector<StateTensor>& state) {
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

void GroupedSynchronizer::begin_anew() {
  for (auto& member : members_) member.strategy->begin_anew();
}

void GroupedSynchronizer::after_backward() {
  for (auto& member : members_) member.strategy->after_backward();
}

// Each runs blocks that the ones after it run.
BlockRunner GroupedSynchronizer::run_blocks(const std::vector<Block>& blocks) {
  BlockRunner all;
  for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
    BlockRunner own = member->strategy->run_blocks(blocks);
    if (!own) continue;
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

void GroupedSynchronizer::with_values(const std::function<void()>& body) {
  std::function<void()> all = body;
  for (auto& member : members_) {
    all = [inner = std::move(all), &member] { member.strategy->with_values(inner); };
  }
  all();
}

void GroupedSynchronizer::keep_values() {
  for (auto& member : members_) member.strategy->keep_values();
}

void GroupedSynchronizer::before_update(std::int64_t step) {
  for (auto& member : members_) member.strategy->before_update(step);
}

void GroupedSynchronizer::after_update(std::int64_t step) {
  for (auto& member : members_) member.strategy->after_update(step);
}

bool GroupedSynchronizer::replicas_equal() const {
  return std::ranges::all_of(members_, [](const Member& member) { return member.strategy->replicas_equal(); });
}

void GroupedSynchronizer::sum_over_slices(at::Tensor& sums) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    at::Tensor own = sums.narrow(0, static_cast<std::int64_t>(i), 1);
    members_[i].strategy->sum_over_slices(own);
  }
}

void GroupedSynchronizer::share_values() {
  for (auto& member : members_) member.strategy->share_values();
}

StateDict GroupedSynchronizer::state() {
  StateDict all;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    append(all, "group" + std::to_string(i) + "/", members_[i].strategy->state());
  }
  return all;
}

void GroupedSynchronizer::finish() {
  for (auto& member : members_) member.strategy->finish();
}

Figures GroupedSynchronizer::figures() const { return members_.at(0).strategy->figures(); }

}  // namespace phalanx
