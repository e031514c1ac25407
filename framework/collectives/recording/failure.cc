// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/recording/failure.h"

#include "framework/base/error.h"
#include "framework/collectives/recording/format.h"

namespace phalanx::recording {

std::string to_failure(const std::exception& error) {
  const auto* const comm_error = dynamic_cast<const CommError*>(&error);
  const char kind = comm_error != nullptr ? static_cast<char>(comm_error->kind()) : kOtherError;
  return std::string(1, kind) + error.what();
}

std::exception_ptr failure_in(const std::string& payload) {
  const auto kind = payload.empty() ? static_cast<char>(CommError::Kind::kSystem) : payload.front();
  const std::string text = payload.empty() ? "" : payload.substr(1);
  if (kind == kOtherError) return std::make_exception_ptr(Error(text));
  return std::make_exception_ptr(CommError(static_cast<CommError::Kind>(kind), text));
}

}  // namespace phalanx::recording
