// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/json.h"

namespace phalanx {

/// Rules by which SentencePiece's models replace characters, compiled to a double-array trie (Aoe 1989; the format is
/// that of https://github.com/s-yata/darts-clone).
class PrecompiledCharsmap {
 public:
  /// Reads base64 text: the size of the trie in bytes, the trie, and texts that end with a zero byte each. Throws
  /// DataError if it is malformed.
  explicit PrecompiledCharsmap(const JsonValue& base64);

  /// Replaces as Hugging Face's tokenizers do: a grapheme cluster of less than 6 bytes by the rule for its shortest
  /// beginning that has one, otherwise each of its characters by its own rule.
  std::string normalized(std::string_view text) const;

 private:
  std::optional<std::string_view> replacement(std::string_view part) const;
  void append_cluster(std::string_view cluster, std::string& result) const;

  std::vector<std::uint32_t> trie_;
  std::string texts_;
};

}  // namespace phalanx
