// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "framework/base/error.h"
#include "framework/comm/store/store.h"

// Helpers that the tests of stores share.
namespace phalanx::testing {

inline const std::string kSecret = "a secret of the tests";

/// A deadline that only a hanging test reaches.
inline constexpr Seconds kLong{30};

/// Returns the CommError that `call` throws; a test in which it throws none fails.
inline CommError comm_error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CommError& error) {
    return error;
  }
  ADD_FAILURE() << "no CommError";
  return {CommError::Kind::kSystem, ""};
}

}  // namespace phalanx::testing
