// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

#include "datasets/text/word_pattern.h"
#include "framework/base/json.h"

namespace phalanx {

/// Says where the matches of a pattern go when a text is split at them.
enum class SplitBehavior {
  kIsolated,            // each is a piece
  kRemoved,             // they are dropped
  kMergedWithPrevious,  // each belongs to what lies before it
  kMergedWithNext,      // each belongs to what lies behind it
  kContiguous,          // those in a row are one piece
};

/// Reads "Isolated", "Removed", ... Throws ConfigError for others.
SplitBehavior split_behavior_of(const JsonValue& name);

/// Puts spans, which come from left to right, together to pieces. Empty pieces are left out.
class PieceMaker {
 public:
  using Piece = std::function<void(std::size_t begin, std::size_t end)>;

  PieceMaker(SplitBehavior behavior, const Piece& piece) : behavior_(behavior), piece_(piece) {}

  void add(Span span);

  /// Emits the last piece.
  void finish();

 private:
  void emit(Span span) const {
    if (span.begin < span.end) piece_(span.begin, span.end);
  }

  SplitBehavior behavior_;
  const Piece& piece_;
  std::optional<Span> held_;  // may still grow
  bool was_match_ = false;
};

}  // namespace phalanx
