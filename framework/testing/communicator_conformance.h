#pragma once

#include <string>

namespace phalanx::testing {

/// The backend under test: what the conformance suite's main() was linked for. Defined by each backend's test.
extern const char* const kBackend;

}  // namespace phalanx::testing
