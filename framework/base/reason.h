// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

namespace phalanx {

/// What an exception tells a user: its what(), of an error of LibTorch without the stack trace, which is for a log; a
/// lack of memory in words.
std::string reason(const std::exception& error);

}  // namespace phalanx
