// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx::testing {

/// The backend that a suite was linked for. Defined by the test that links suite and backend.
extern const char* const kBackend;

}  // namespace phalanx::testing
