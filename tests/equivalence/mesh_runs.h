// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/equivalence/training.h"

namespace phalanx::testing {

using Changes = std::vector<std::string>;

/// The difference that another order of computation may cause between weights, in double precision.
inline constexpr double kRounding = 1e-9;

/// Returns the config for 20 steps of a small model: "gpt", "llama", "moe", "bert", "lstm", "transformer", "mlp",
/// "lenet", "vit", "vit_b_16", "vgg11", "vgg11_bn", "vae", "dcgan", "siamese", "exported" or "torchscript". It uses
/// double precision unless `more` says otherwise: Adam divides by the size of a gradient, so the effect of rounding on
/// a small gradient depends on the kernels of the processor.
ExperimentConfig config_of(const std::string& kind, const Changes& more);

/// Returns the relative difference of the weights that two runs have saved in their folders.
double relative_difference(const std::string& folder, const std::string& expected);

/// Trains on `ranks` ranks with `mesh` and `both`, and on one rank with `both` only. Expects the same weights and
/// metrics.
void expect_equals_one_rank(const std::string& kind, int ranks, const Changes& mesh, const Changes& both,
                            double tolerance = kRounding);

/// The same for runs with other changes: `sharded` on `ranks` ranks, and `plain` on the first `others` of them.
void expect_same(const std::string& kind, int ranks, const Changes& sharded, int others, const Changes& plain);

/// A part of a run, with its ranks and the changes of its config.
struct RunPart {
  int ranks;
  Changes changes;
};

/// Trains five steps on each leg, each from the end of the previous one. Expects the weights of a run of as many steps
/// on one rank with `alone`. `name` identifies the runs.
void expect_resumed_equals_one_rank(const std::string& kind, const std::string& name, const std::vector<RunPart>& legs,
                                    const Changes& alone = {"strategy=single"});

/// Expects that all ranks throw a ConfigError whose text contains `part`.
void expect_refused(int ranks, const std::string& kind, const Changes& changes, const char* part);

/// A model of config_of(), the number of ranks, a mesh and a strategy.
using MeshCase = std::tuple<std::string, int, std::string, std::string>;

/// The base of suites over cases.
class OnMesh : public ::testing::TestWithParam<MeshCase> {
 protected:
  /// Compares the case's run with a run on one rank; `both` applies to both.
  void expect_equals_one_rank(const Changes& both) const {
    const auto& [kind, ranks, mesh, strategy] = GetParam();
    testing::expect_equals_one_rank(kind, ranks, {"mesh={" + mesh + "}", "strategy=" + strategy}, both);
  }
};

}  // namespace phalanx::testing
