// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/special_tokens.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace phalanx {

SpecialTokens::SpecialTokens(const std::map<std::string, std::int64_t>& tokens) {
  for (const auto& [text, number] : tokens) {
    nodes_[static_cast<std::size_t>(add(text))].token = static_cast<std::int32_t>(tokens_.size());
    tokens_.push_back({text.size(), number});
  }
  link_shorter_ones();
}

std::int32_t SpecialTokens::add(std::string_view text) {
  std::int32_t node = 0;
  for (const char letter : std::views::reverse(text)) {
    const auto [found, is_new] = edges_.try_emplace(edge(node, letter), static_cast<std::int32_t>(nodes_.size()));
    if (is_new) nodes_.emplace_back();
    node = found->second;
  }
  return node;
}

// Visits nodes by depth, so that nodes of shorter texts are complete.
void SpecialTokens::link_shorter_ones() {
  std::vector<std::vector<std::pair<char, std::int32_t>>> children(nodes_.size());
  for (const auto& [from, to] : edges_) children[from >> 8].emplace_back(static_cast<char>(from & 0xff), to);
  std::vector<std::int32_t> order{0};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto parent = order[i];
    for (const auto& [letter, child] : children[static_cast<std::size_t>(parent)]) {
      auto& node = nodes_[static_cast<std::size_t>(child)];
      if (parent != 0) node.shorter = next(nodes_[static_cast<std::size_t>(parent)].shorter, letter);
      if (node.token < 0) node.token = nodes_[static_cast<std::size_t>(node.shorter)].token;
      order.push_back(child);
    }
  }
}

// Returns the node of the longest text that ends with `letter` and whose rest is the text of `node` or a suffix of it.
std::int32_t SpecialTokens::next(std::int32_t node, char letter) const {
  for (;;) {
    if (const auto found = edges_.find(edge(node, letter)); found != edges_.end()) return found->second;
    if (node == 0) return 0;
    node = nodes_[static_cast<std::size_t>(node)].shorter;
  }
}

std::vector<SpecialTokens::Found> SpecialTokens::find(std::string_view text) const {
  std::vector<Found> candidates;  // the longest token at each position, from right to left
  if (tokens_.empty()) return candidates;
  std::int32_t node = 0;
  for (auto at = text.size(); at-- > 0;) {
    node = next(node, text[at]);
    const auto token = nodes_[static_cast<std::size_t>(node)].token;
    if (token < 0) continue;
    const auto& [size, number] = tokens_[static_cast<std::size_t>(token)];
    candidates.push_back({at, size, number});
  }
  std::ranges::reverse(candidates);
  std::vector<Found> found;
  std::size_t end = 0;
  for (const auto& candidate : candidates) {
    if (candidate.begin < end) continue;
    found.push_back(candidate);
    end = candidate.begin + candidate.size;
  }
  return found;
}

}  // namespace phalanx
