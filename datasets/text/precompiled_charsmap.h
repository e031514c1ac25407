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

/// Rules by which SentencePiece models replace characters, compiled into a double-array trie (Aoe 1989) in the format
/// of https://github.com/s-yata/darts-clone.
class PrecompiledCharsmap {
 public:
  /// Parses base64 text: the size of the trie in bytes, the trie, and zero-terminated texts. Throws DataError if it is
  /// malformed.
  explicit PrecompiledCharsmap(const JsonValue& base64);

  /// Replaces characters as Hugging Face's tokenizers do. A grapheme cluster of fewer than 6 bytes is replaced by the
  /// rule for its shortest prefix that has one. Otherwise, each of its characters is replaced by its own rule.
  std::string normalized(std::string_view text) const;

 private:
  std::optional<std::string_view> replacement(std::string_view part) const;
  void append_cluster(std::string_view cluster, std::string& result) const;

  std::vector<std::uint32_t> trie_;
  std::string texts_;
};

}  // namespace phalanx
