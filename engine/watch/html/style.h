// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// What pages look like (CSS), and what their charts do under the pointer (JavaScript).
extern const char* const kStyle;
extern const char* const kScript;

}  // namespace phalanx
