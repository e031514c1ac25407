// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/conformance/suite.h"

#include "framework/comm/launch/launch_environment.h"

namespace phalanx::testing {

std::vector<int> world_sizes() {
  std::vector<int> sizes{1, 2, 3, 4, 5, 8};
  const auto launched = detect_launch_environment();
  if (launched) std::erase_if(sizes, [&](int size) { return size > launched->rank_info.size; });
  return sizes;
}

std::string ranks_of(const ::testing::TestParamInfo<int>& info) { return std::to_string(info.param); }

std::vector<std::int64_t> uneven_counts(int ranks, std::int64_t scale) {
  std::vector<std::int64_t> counts;
  for (int rank = 0; rank < ranks; ++rank) counts.push_back(rank % 3 == 1 ? 0 : scale * (rank % 4 + 1) / 4);
  return counts;
}

std::string about(std::int64_t elements, at::ScalarType dtype) {
  return std::to_string(elements) + ' ' + c10::toString(dtype);
}

std::string about(const Reduction& op, std::int64_t elements, at::ScalarType dtype) {
  return op.name() + " of " + about(elements, dtype);
}

}  // namespace phalanx::testing
