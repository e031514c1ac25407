// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "framework/base/json.h"

namespace phalanx {

/// Changes a text before it is cut into words. Any number of threads may use one at the same time.
class Normalizer {
 public:
  virtual ~Normalizer() = default;

  virtual void apply(std::string& text) const = 0;

  /// Returns true if the first character of each text remains, changed or not, and nothing is put in front of it.
  virtual bool keeps_the_beginning() const { return true; }
};

/// Makes what a tokenizer.json names "normalizer": BertNormalizer, ByteLevel, Lowercase, NFC, NFD, NFKC, NFKD, Nmt,
/// Precompiled, Prepend, Replace, Sequence, Strip and StripAccents; nullptr for null. Throws ConfigError for others.
/// Errors of patterns begin with `name`.
std::unique_ptr<Normalizer> make_normalizer(const JsonValue& json, const std::string& name);

}  // namespace phalanx
