// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "framework/collectives/recording/recording.h"

namespace phalanx::recording {

/// The first operation in which two recordings of one rank differ.
struct OperationDifference {
  enum class Kind {
    kInput,   // the rank itself had computed something else before it called the operation
    kResult,  // the rank gave the same, but received something else: another rank, or the connection, is the cause
    kCall,    // the rank called something else
  };

  Kind kind = Kind::kInput;
  EntryHead first{};   // the operation in the first recording
  std::string text{};  // one line for people
};

/// Compares the operations that both recordings have, in the order of the first one. Results of measurements
/// (MeasuredInputs) are not compared. Returns nullopt if there is no difference.
std::optional<OperationDifference> compare(const Recording& first, const Recording& second);

}  // namespace phalanx::recording
