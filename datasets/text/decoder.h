// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/base/json.h"

namespace phalanx {

/// The text of a token while it is decoded.
struct TokenText {
  std::string text;
  bool added = false;  // true for an added token, whose text is not changed
};

/// Turns the texts of tokens into the parts of a text. Any number of threads may use one at the same time.
class Decoder {
 public:
  virtual ~Decoder() = default;

  /// Changes the texts so that their concatenation is the whole text.
  virtual void apply(std::vector<TokenText>& texts) const = 0;
};

/// Makes the decoder that `json`, the value of "decoder" in a tokenizer.json, describes: BPEDecoder, ByteFallback,
/// ByteLevel, Fuse, Metaspace, Replace, Sequence, Strip or WordPiece. For null, makes one that puts spaces between
/// tokens. Bytes that are not UTF-8 are kept, not replaced. Throws ConfigError for other decoders, and for Strip at the
/// end of a text, since the end is unknown while a text is generated. Errors of patterns begin with `name`.
std::unique_ptr<Decoder> make_decoder(const JsonValue& json, const std::string& name);

/// Makes the decoder ByteLevel.
std::unique_ptr<Decoder> make_byte_level_decoder();

}  // namespace phalanx
