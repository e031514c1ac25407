// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "framework/base/json.h"

namespace phalanx {

/// Changes a text before it is split into words. Any number of threads may use one at the same time.
class Normalizer {
 public:
  virtual ~Normalizer() = default;

  virtual void apply(std::string& text) const = 0;

  /// Returns true if every text keeps its first character, changed or not, and nothing is put before it.
  virtual bool keeps_the_beginning() const { return true; }
};

/// Makes the normalizer that `json`, the value of "normalizer" in a tokenizer.json, describes: BertNormalizer,
/// ByteLevel, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, Precompiled, Prepend, Replace, Sequence, Strip or StripAccents.
/// Returns nullptr for null. Throws ConfigError for other normalizers. Errors of patterns begin with `name`.
std::unique_ptr<Normalizer> make_normalizer(const JsonValue& json, const std::string& name);

}  // namespace phalanx
