// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "framework/base/error.h"

namespace phalanx::testing {

/// Returns the CommError that `call` must throw.
template <class Call>
CommError error_of(const Call& call) {
  try {
    call();
  } catch (const CommError& error) {
    return error;
  }
  ADD_FAILURE() << "expected a CommError";
  return CommError(CommError::Kind::kSystem, "none");
}

inline bool contains(const CommError& error, const std::string& text) {
  return std::string(error.what()).find(text) != std::string::npos;
}

/// Returns the waiting time that an error text mentions, or 0 if it mentions none. On a busy machine it can be longer
/// than the timeout.
inline double seconds_waited(const std::string& text) {
  const std::string key = "waited ";
  const auto at = text.find(key);
  return at == std::string::npos ? 0 : std::stod(text.substr(at + key.size()));
}

}  // namespace phalanx::testing
