// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "datasets/dataset.h"
#include "datasets/text/tokenizer.h"
#include "framework/base/config/visitor.h"

namespace phalanx {

/// The config fields of text datasets that describe how documents become samples.
struct SequencesConfig {
  std::string tokenizer = "bytes";
  std::string packing = "pack";
  std::int64_t context = 256;

  template <class V>
  void visit(V& v) {
    v("tokenizer", tokenizer,
      "bytes, or in root a tokenizer.json, a SentencePiece .model, or a folder with one of these");
    v("packing", packing, "pack: documents share samples; pad: each has its own, padded",
      config::one_of({"pack", "pad"}));
    v("context", context, "tokens per sample", config::between(1, 1 << 20));
  }

  /// Throws the errors of phalanx::make_tokenizer().
  std::shared_ptr<const Tokenizer> make_tokenizer(const std::filesystem::path& root) const;
};

/// Returns the next document of a text, or nothing after the last one.
using NextDocument = std::function<std::optional<std::string_view>()>;

/// Returns all documents as sequences of tokens: input [n, context] int64, target [n, context] int64, the token that
/// follows each position. An end token, whose number is the size of the tokenizer, follows each document. All tokens
/// stay in memory, 8 bytes each.
///
///   pack   documents are concatenated and cut every `context` tokens: there is no padding, and a sample may have parts
///          of several documents
///   pad    samples have one document each; the last sample of a document is padded with end tokens, whose targets are
///          kIgnored. Samples differ in length, and the sampler `bucketed` can group them by length
///
/// Throws DataError, which begins with `where`, if the documents are too short for a single sample.
std::shared_ptr<const Dataset> document_sequences(const SequencesConfig& config, const Tokenizer& tokenizer,
                                                  const NextDocument& next, const std::string& where);

}  // namespace phalanx
