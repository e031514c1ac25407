// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx::testing {

/// The name of the backend that a suite tests. Defined by the test that links the suite and the backend.
extern const char* const kBackend;

}  // namespace phalanx::testing
