// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

namespace phalanx {

/// Returns the text that an exception shows to a user. This is what(), except that the stack trace of a LibTorch error
/// is cut off (it belongs in a log) and that a lack of memory is described in words.
std::string reason(const std::exception& error);

}  // namespace phalanx
