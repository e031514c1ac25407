// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/equivalence/training.h"

namespace phalanx::testing {

using Changes = std::vector<std::string>;

/// What weights may differ by that were computed in another order, in double precision.
inline constexpr double kRounding = 1e-9;

/// 20 steps of a small model: "gpt", "llama", "moe", "bert", "lstm", "transformer", "mlp", "lenet", "vit",
/// "vit_b_16", "vgg11", "vgg11_bn", "vae", "dcgan", "siamese", "exported" or "torchscript". In double precision unless
/// `more` says otherwise: Adam divides by the size of a gradient, so what rounding makes of a small one depends on the
/// kernels of the processor.
ExperimentConfig config_of(const std::string& kind, const Changes& more);

/// Of the weights that runs have left in their folders.
double relative_difference(const std::string& folder, const std::string& expected);

/// Trains on `ranks` ranks with `mesh` and `both`, and on one with `both` alone, and expects the same weights and
/// readings.
void expect_as_alone(const std::string& kind, int ranks, const Changes& mesh, const Changes& both,
                     double tolerance = kRounding);

/// The same with `plain` on the first `others` of these ranks, where these are other changes than `divided`.
void expect_same(const std::string& kind, int ranks, const Changes& divided, int others, const Changes& plain);

/// Some ranks for a part of a run, and the changes of their config.
struct Leg {
  int ranks;
  Changes changes;
};

/// Trains five steps on each leg, where the one before has left off, and expects the weights of a run of as many steps
/// on one rank with `alone`. `name`: of the runs.
void expect_journey_as_alone(const std::string& kind, const std::string& name, const std::vector<Leg>& legs,
                             const Changes& alone = {"strategy=single"});

/// Expects a ConfigError whose text has `part` on all ranks.
void expect_refused(int ranks, const std::string& kind, const Changes& changes, const char* part);

/// A model of config_of(), the number of ranks, a mesh and a strategy.
using MeshCase = std::tuple<std::string, int, std::string, std::string>;

/// Suites over cases.
class OnMesh : public ::testing::TestWithParam<MeshCase> {
 protected:
  /// Of its case, with `both` on all ranks and on one.
  void expect_as_alone(const Changes& both) const {
    const auto& [kind, ranks, mesh, strategy] = GetParam();
    testing::expect_as_alone(kind, ranks, {"mesh={" + mesh + "}", "strategy=" + strategy}, both);
  }
};

}  // namespace phalanx::testing
