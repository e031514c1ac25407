// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

#include "datasets/text/word_pattern.h"
#include "framework/base/json.h"

namespace phalanx {

/// The treatment of the matches of a pattern when a text is split at them.
enum class SplitBehavior {
  kIsolated,            // each match is a piece
  kRemoved,             // matches are dropped
  kMergedWithPrevious,  // each match belongs to the text before it
  kMergedWithNext,      // each match belongs to the text after it
  kContiguous,          // consecutive matches are one piece
};

/// Reads "Isolated", "Removed", ... Throws ConfigError for others.
SplitBehavior split_behavior_of(const JsonValue& name);

/// Combines spans, which are added from left to right, into pieces. Drops empty pieces.
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
  std::optional<Span> held_;  // piece that may still grow
  bool was_match_ = false;
};

}  // namespace phalanx
