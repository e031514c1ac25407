// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace phalanx {

/// Finds texts that are a token each, such as <|endoftext|>, as Hugging Face's tokenizers do: the leftmost one, and of
/// those that begin at the same place the longest one. Takes time linear in the text, however many there are (Aho and
/// Corasick 1975, Efficient String Matching).
class SpecialTokens {
 public:
  /// None of the texts may be empty.
  explicit SpecialTokens(const std::map<std::string, std::int64_t>& tokens);

  struct Found {
    std::size_t begin, size;
    std::int64_t token;
  };
  /// The special tokens in a text, from left to right. No two of them overlap.
  std::vector<Found> find(std::string_view text) const;

 private:
  // A node of the tree of all texts, each spelled from its end: a search from the end of a text then meets the longest
  // token that begins at a place when it gets there.
  struct Node {
    std::int32_t shorter = 0;  // the node of the longest proper suffix that is a node too
    std::int32_t token = -1;   // the longest token that is a suffix of this node's text: its place in tokens_
  };
  struct Token {
    std::size_t size;
    std::int64_t number;
  };

  static std::uint64_t edge(std::int32_t node, char letter) {
    return static_cast<std::uint64_t>(node) << 8 | static_cast<unsigned char>(letter);
  }
  std::int32_t next(std::int32_t node, char letter) const;
  std::int32_t add(std::string_view text);
  void link_shorter_ones();

  std::vector<Token> tokens_;
  std::vector<Node> nodes_{Node{}};
  std::unordered_map<std::uint64_t, std::int32_t> edges_;
};

}  // namespace phalanx
