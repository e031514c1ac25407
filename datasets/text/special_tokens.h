// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace phalanx {

/// Finds texts that are one token each, such as <|endoftext|>, as Hugging Face's tokenizers do: the leftmost one, and
/// the longest one of several that begin at the same position. Takes time linear in the text, independent of the number
/// of tokens (Aho and Corasick 1975, Efficient String Matching).
class SpecialTokens {
 public:
  /// No text may be empty.
  explicit SpecialTokens(const std::map<std::string, std::int64_t>& tokens);

  struct Found {
    std::size_t begin, size;
    std::int64_t token;
  };
  /// Returns the special tokens in a text from left to right, without overlaps.
  std::vector<Found> find(std::string_view text) const;

 private:
  // A node of the trie of all texts, each spelled backwards. A search from the end of a text has then seen the longest
  // token that begins at a position when it reaches this position.
  struct Node {
    std::int32_t shorter = 0;  // the node of the longest proper suffix that is also a node
    std::int32_t token = -1;   // index in tokens_ of the longest token that is a suffix of this node's text
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
