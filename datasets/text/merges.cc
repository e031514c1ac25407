// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/merges.h"

#include <queue>
#include <tuple>

namespace phalanx {
namespace {

// A token in the chain of a word. Tokens that have been merged into another one leave the chain.
struct Link {
  std::int64_t token;
  std::ptrdiff_t before, after;
};

// Two neighbours that can be merged. A candidate is outdated once either token has changed.
struct Candidate {
  std::int64_t rank, merged;
  std::ptrdiff_t left, right;
  std::int64_t left_token, right_token;

  bool operator<(const Candidate& other) const {  // std::priority_queue returns the greatest element first
    return std::tie(rank, left) > std::tie(other.rank, other.left);
  }
};

}  // namespace

void Merges::add(std::int64_t left, std::int64_t right, std::int64_t merged) {
  merges_.insert_or_assign({left, right}, Merge{added_++, merged});
}

std::vector<std::int64_t> Merges::apply(const std::vector<std::int64_t>& tokens) const {
  constexpr std::int64_t kGone = -1;
  const auto count = std::ssize(tokens);
  std::vector<Link> word;
  for (std::ptrdiff_t i = 0; i < count; ++i) word.push_back({tokens[static_cast<std::size_t>(i)], i - 1, i + 1});
  std::priority_queue<Candidate> candidates;
  const auto offer = [&](std::ptrdiff_t left, std::ptrdiff_t right) {
    if (left < 0 || right >= count) return;
    const auto a = word[static_cast<std::size_t>(left)].token, b = word[static_cast<std::size_t>(right)].token;
    if (const auto found = merges_.find({a, b}); found != merges_.end()) {
      candidates.push({found->second.rank, found->second.merged, left, right, a, b});
    }
  };
  for (std::ptrdiff_t i = 0; i + 1 < count; ++i) offer(i, i + 1);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    auto &left = word[static_cast<std::size_t>(best.left)], &right = word[static_cast<std::size_t>(best.right)];
    if (left.token != best.left_token || right.token != best.right_token || left.after != best.right) continue;
    left.token = best.merged;
    left.after = right.after;
    right.token = kGone;
    if (left.after < count) word[static_cast<std::size_t>(left.after)].before = best.left;
    offer(left.before, best.left);
    offer(best.left, left.after);
  }
  std::vector<std::int64_t> left_over;
  for (std::ptrdiff_t i = 0; i < count; i = word[static_cast<std::size_t>(i)].after) {
    left_over.push_back(word[static_cast<std::size_t>(i)].token);
  }
  return left_over;
}

}  // namespace phalanx
