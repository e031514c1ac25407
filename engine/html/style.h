// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// The style of pages (CSS), and the script of their charts (JavaScript).
extern const char* const kStyle;
extern const char* const kScript;

}  // namespace phalanx
