// SPDX-License-Identifier: Apache-2.0
// Replaces gloo_subject.cc if Gloo was not installed when Phalanx was built.
#include "framework/base/error.h"
#include "tools/bench/subject.h"

namespace phalanx::bench {

std::unique_ptr<Subject> make_gloo_subject(const RankInfo&, StorePtr, Seconds) {
  throw ConfigError(
      "--against gloo: Gloo was not installed when this program was built: install libgloo-dev and build again");
}

}  // namespace phalanx::bench
