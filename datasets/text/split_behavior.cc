// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/split_behavior.h"

#include <string>

#include "datasets/text/unsupported.h"

namespace phalanx {

SplitBehavior split_behavior_of(const JsonValue& name) {
  const auto text = name.as<std::string>();
  if (text == "Isolated") return SplitBehavior::kIsolated;
  if (text == "Removed") return SplitBehavior::kRemoved;
  if (text == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (text == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (text == "Contiguous") return SplitBehavior::kContiguous;
  refuse_unsupported(name, "the behavior " + text);
}

void PieceMaker::add(Span span) {
  switch (behavior_) {
    case SplitBehavior::kIsolated:
      return emit(span);
    case SplitBehavior::kRemoved:
      if (!span.is_match) emit(span);
      return;
    case SplitBehavior::kMergedWithNext:
      if (held_ && !span.is_match) {
        span.begin = held_->begin;
      } else if (held_) {
        emit(*held_);
      }
      held_.reset();
      if (span.is_match) {
        held_ = span;
      } else {
        emit(span);
      }
      return;
    case SplitBehavior::kMergedWithPrevious:
    case SplitBehavior::kContiguous: {
      const bool grows =
          behavior_ == SplitBehavior::kContiguous ? span.is_match == was_match_ : span.is_match && !was_match_;
      was_match_ = span.is_match;
      if (held_ && grows) {
        held_->end = span.end;
        return;
      }
      if (held_) emit(*held_);
      held_ = span;
    }
  }
}

void PieceMaker::finish() {
  if (held_) emit(*held_);
  held_.reset();
}

}  // namespace phalanx
