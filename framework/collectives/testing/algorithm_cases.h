// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/concat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "framework/collectives/algorithm.h"
#include "framework/collectives/steps.h"
#include "framework/collectives/testing/expected.h"
#include "framework/testing/worlds.h"

/// The cases that all tests of registered algorithms share: which algorithms run, on how many ranks, with which inputs.
namespace phalanx::testing {

using Case = std::tuple<const Algorithm*, int>;  // an algorithm and a number of ranks

inline constexpr int kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16};

inline std::vector<Case> cases(Op op) {
  std::vector<Case> all;
  for (const auto* algorithm : Algorithms::global().of(op)) {
    if (algorithm->only_private_memory) continue;  // the backend's own, which the backend's tests cover
    for (const int ranks : kSizes) all.emplace_back(algorithm, ranks);
  }
  return all;
}

inline std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return std::get<0>(info.param)->name + "_of_" + std::to_string(std::get<1>(info.param));
}

/// A test of one registered algorithm on a given number of ranks.
class AlgorithmTest : public ::testing::TestWithParam<Case> {
 protected:
  const Algorithm& algorithm() const { return *std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }

  // Element counts: zero, one, just below, at and above the number of ranks, and a larger odd count. several_chunks()
  // adds several chunks per rank where the group is small enough for that to take a reasonable time.
  std::vector<std::int64_t> elements() const { return {0, 1, ranks() - 1, ranks(), 2 * ranks() + 1, 1009}; }
  std::int64_t several_chunks() const { return ranks() > 5 ? 0 : (5 * collectives::kChunkBytes / 2) / 8 * ranks() + 1; }
  std::vector<int> roots() const { return {0, ranks() / 2, ranks() - 1}; }

  std::vector<std::vector<std::int64_t>> counts() const {
    std::vector<std::vector<std::int64_t>> all;
    for (const std::int64_t part : {0, 1, 2, 37}) all.emplace_back(ranks(), part);
    for (int seed = 0; seed < 3; ++seed) all.push_back(uneven_counts(ranks(), seed));
    all.emplace_back(ranks(), 0);
    all.back()[ranks() / 2] = several_chunks();
    return all;
  }

  void run(const RankBody& body) { run_ranks("inproc", ranks(), body); }

  // Runs `operation` if the algorithm suits it and returns true. Otherwise expects launch() to refuse it and returns
  // false.
  bool does(const CommunicatorPtr& world, const Operation& operation) {
    if (suits(algorithm(), *world, operation)) {
      launch(world, algorithm(), operation).wait();
      return true;
    }
    EXPECT_THROW(static_cast<void>(launch(world, algorithm(), operation)), std::invalid_argument);
    return false;
  }
};

inline at::Tensor all_contributions(const std::vector<std::int64_t>& counts) {
  std::vector<at::Tensor> parts;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    parts.push_back(contribution(static_cast<int>(rank), counts[rank], c10::kLong));
  }
  return at::concat(parts);
}

inline bool even(const std::vector<std::int64_t>& counts) {
  return std::all_of(counts.begin(), counts.end(), [&](auto count) { return count == counts[0]; });
}

inline std::int64_t sum(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

}  // namespace phalanx::testing
