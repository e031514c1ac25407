// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/canonical_sum.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "framework/base/parts.h"

namespace phalanx {
namespace {

using Node = PairwiseSum::Node;

// Returns the nodes that shards [first, last) are combined into, without values.
std::vector<Node> nodes_of(int first, int last) {
  std::vector<Node> nodes;
  while (first < last) {
    const auto fits = std::bit_floor(static_cast<unsigned>(last - first));
    const auto aligned = first == 0 ? fits : 1u << std::countr_zero(static_cast<unsigned>(first));
    nodes.push_back({.first = first, .count = static_cast<int>(std::min(fits, aligned)), .values = {}});
    first += nodes.back().count;
  }
  return nodes;
}

}  // namespace

void PairwiseSum::add(Node node) {
  nodes_.push_back(std::move(node));
  while (nodes_.size() > 1) {
    auto& left = nodes_[nodes_.size() - 2];
    if (left.count != nodes_.back().count || left.first % (2 * left.count) != 0) return;
    left.values.add_(nodes_.back().values);
    left.count *= 2;
    nodes_.pop_back();
  }
}

std::vector<Node> PairwiseSum::take() { return std::exchange(nodes_, {}); }

at::Tensor PairwiseSum::total() {
  auto nodes = take();
  for (; nodes.size() > 1; nodes.pop_back()) nodes[nodes.size() - 2].values.add_(nodes.back().values);
  return nodes.at(0).values;
}

CanonicalSum::CanonicalSum(CommunicatorPtr group, int shards) : group_(std::move(group)), shards_(shards) {
  if (shards <= 0 || shards % group_->size() != 0) {
    throw std::invalid_argument(std::to_string(shards) + " shards cannot be divided among " +
                                std::to_string(group_->size()) + " ranks");
  }
}

void CanonicalSum::add(int shard, const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  own_.add({.first = shard, .count = 1, .values = values.clone()});
}

void CanonicalSum::finish(const at::Tensor& sum) {
  const at::NoGradGuard no_grad;
  auto own = own_.take();
  if (group_->size() == 1) {
    PairwiseSum all;
    for (auto& node : own) all.add(std::move(node));
    sum.copy_(all.total());
    return;
  }
  const auto parts = nearly_equal_counts(sum.numel(), group_->size());
  PairwiseSum all;
  for (auto& node : exchange(own, parts)) all.add(std::move(node));
  group_->all_gather(sum, all.total(), parts).wait();
}

// Exchanges every rank's j-th node, for each j. Ranks may have different numbers of nodes.
std::vector<Node> CanonicalSum::exchange(const std::vector<Node>& own, const std::vector<std::int64_t>& parts) {
  const auto size = static_cast<std::size_t>(group_->size());
  const std::int64_t mine = parts[group_->rank()];
  std::vector<std::vector<Node>> by_rank;
  std::size_t most = 0;
  for (std::size_t rank = 0; rank < size; ++rank) {
    by_rank.push_back(nodes_of(first_of(static_cast<int>(rank)), first_of(static_cast<int>(rank) + 1)));
    most = std::max(most, by_rank.back().size());
  }
  const std::vector<std::int64_t> nothing(size, 0);
  for (std::size_t j = 0; j < most; ++j) {
    std::vector<std::int64_t> from(size);
    for (std::size_t rank = 0; rank < size; ++rank) from[rank] = j < by_rank[rank].size() ? mine : 0;
    const auto& options = own.front().values.options();
    at::Tensor received = at::empty({std::accumulate(from.begin(), from.end(), std::int64_t{0})}, options);
    const bool sends = j < own.size();
    group_->all_to_all(received, sends ? own[j].values : at::empty({0}, options), from, sends ? parts : nothing).wait();
    std::int64_t begin = 0;
    for (std::size_t rank = 0; rank < size; ++rank) {
      if (j >= by_rank[rank].size()) continue;
      by_rank[rank][j].values = received.narrow(0, begin, mine);
      begin += mine;
    }
  }
  std::vector<Node> all;
  for (auto& nodes : by_rank) std::ranges::move(nodes, std::back_inserter(all));
  return all;
}

}  // namespace phalanx
