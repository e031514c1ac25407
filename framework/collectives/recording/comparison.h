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

/// Returns the kind of difference between two recordings of an operation, or nullopt. Measurements are not compared.
std::optional<OperationDifference::Kind> difference(const EntryHead& first, const EntryHead& second);

/// Describes a difference in one line. `where` says in which part of the input or of the result it is, such as " in
/// fc1.weight"; may be empty.
std::string explain(OperationDifference::Kind kind, const Recording& first, const EntryHead& in_first,
                    const Recording& second, const EntryHead& in_second, const std::string& where = "");

/// Compares the operations that both recordings have, in the order of the first one. Results of measurements
/// (MeasuredInputs) are not compared. Returns nullopt if there is no difference.
std::optional<OperationDifference> compare(const Recording& first, const Recording& second);

}  // namespace phalanx::recording
