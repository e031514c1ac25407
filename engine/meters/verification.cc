// SPDX-License-Identifier: Apache-2.0
// Verification decides by the distance of two embeddings if the samples have the same class. Reads the share of correct
// decisions for the first member of each sample with each of the others. Output [n, members, width] with at least two
// members, target [n, members] int64.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include <memory>

#include "engine/meters/embeddings.h"
#include "engine/meters/mean.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct VerificationConfig {
  double threshold = 0.5;

  template <class V>
  void visit(V& v) {
    v("threshold", threshold, "samples whose embeddings are nearer than this are predicted to be of the same class",
      config::above(0));
  }
};

void measure_verification(const Batch& batch, const Step::Result& result, double threshold, Mean& mean) {
  const auto [vectors, classes] = embeddings_of(batch, result);
  const auto others = classes.size(1) - 1;
  if (others < 1) {
    throw ConfigError(
        "meter verification needs samples of two members or more, as the datasets pairs and triplets make");
  }
  const at::Tensor differences = vectors.narrow(1, 1, others) - vectors.narrow(1, 0, 1);
  const at::Tensor judged_same = differences.square().sum(2).lt(threshold * threshold);
  const at::Tensor same = classes.narrow(1, 1, others).eq(classes.narrow(1, 0, 1));
  // NaN is never near another embedding, but must not count as a correct decision either.
  const at::Tensor right = judged_same.eq(same).logical_and(differences.isfinite().all(2));
  mean.add(right.sum().item<double>(), static_cast<double>(same.numel()));
}

const bool verification_registered = Meters::global().add<VerificationConfig>(
    "verification", "share of pairs correctly predicted to be of the same class or not",
    [](const VerificationConfig& c) {
      return std::make_unique<MeanMeter>(
          "accuracy", [threshold = c.threshold](const Batch& batch, const Step::Result& result, Mean& mean) {
            measure_verification(batch, result, threshold, mean);
          });
    });

}  // namespace
}  // namespace phalanx
