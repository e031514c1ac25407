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

/// How documents become samples: fields of datasets of text.
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

  /// Throws as phalanx::make_tokenizer().
  std::shared_ptr<const Tokenizer> make_tokenizer(const std::filesystem::path& root) const;
};

/// The next document of a text; nothing behind the last one.
using NextDocument = std::function<std::optional<std::string_view>()>;

/// All documents as sequences of tokens: input [n, context] int64 -> target [n, context] int64, the token that follows
/// each. Behind each document comes an end token, whose number is one above the tokenizer's. All tokens stay in memory,
/// 8 bytes each.
///
///   pack   documents one behind the other, cut every `context` tokens: nothing is padded, and a sample may have parts
///          of several documents
///   pad    a document has samples of its own; the last is padded with end tokens, whose targets are kIgnored. Samples
///          differ in length, so `bucketed` orders them by it
///
/// Throws DataError, which begins with `where`, for documents that do not make one sample.
std::shared_ptr<const Dataset> document_sequences(const SequencesConfig& config, const Tokenizer& tokenizer,
                                                  const NextDocument& next, const std::string& where);

}  // namespace phalanx
