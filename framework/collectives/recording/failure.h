// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

namespace phalanx::recording {

/// Returns the payload of an entry with kFailed: the error of an operation or of a request.
std::string to_failure(const std::exception& error);

/// Returns the error in such a payload, either a CommError or another Error.
std::exception_ptr failure_in(const std::string& payload);

}  // namespace phalanx::recording
