#pragma once

#include <gtest/gtest.h>

#include <string>

#include "framework/base/error.h"

namespace phalanx::testing {

/// The CommError that `call` must throw.
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

}  // namespace phalanx::testing
