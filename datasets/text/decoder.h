// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/base/json.h"

namespace phalanx {

/// The text of a token, on its way to being a part of a text.
struct TokenText {
  std::string text;
  bool added = false;  // true for an added token, whose text is left as it is
};

/// Makes texts of tokens parts of a text. Any number of threads may use one at the same time.
class Decoder {
 public:
  virtual ~Decoder() = default;

  /// Changes the texts so that they make up the whole text one behind the other.
  virtual void apply(std::vector<TokenText>& texts) const = 0;
};

/// Makes what a tokenizer.json names "decoder": BPEDecoder, ByteFallback, ByteLevel, Fuse, Metaspace, Replace,
/// Sequence, Strip and WordPiece; for null, one that puts spaces between tokens. Bytes that are not UTF-8 are kept, not
/// replaced. Throws ConfigError for others, and for Strip at the end of a text, which has no end while it is generated.
/// Errors of patterns begin with `name`.
std::unique_ptr<Decoder> make_decoder(const JsonValue& json, const std::string& name);

/// The decoder ByteLevel.
std::unique_ptr<Decoder> make_byte_level_decoder();

}  // namespace phalanx
