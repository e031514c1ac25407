// SPDX-License-Identifier: Apache-2.0
// Losses on embeddings, which pull embeddings of the same class together and push embeddings of different classes
// apart. The output is [n, members, width] and the target [n, members] int64 class indices; D is the distance between
// two embeddings.
//
//   contrastive  (Hadsell, Chopra, LeCun 2006, Dimensionality Reduction by Learning an Invariant Mapping, equation 4)
//       on pairs: D^2 / 2 within a class, max(0, margin - D)^2 / 2 between classes
//   triplet      (Schroff, Kalenichenko, Philbin 2015, FaceNet, arXiv:1503.03832, equation 2)
//       on an anchor a, another sample p of its class and a sample n of another class:
//       max(0, D(a, p) - D(a, n) + margin). D is squared, as in the paper, or not, as in
//       torch.nn.functional.triplet_margin_loss.
//
// Triplets are the samples (mining: given), or each embedding as anchor with the farthest one of its class and the
// nearest one of another class (batch_hard: Hermans, Beyer, Leibe 2017, arXiv:1703.07737, equation 5). The latter
// compares only samples on the same rank, so the result depends on the number of ranks that share a batch.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/pairwise_distance.h>

#include <limits>
#include <memory>
#include <string>

#include "engine/loss/loss.h"
#include "engine/loss/require.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

void check_members(const char* loss, std::int64_t members, const at::Tensor& output, const at::Tensor& target) {
  require_of_loss(output.dim() == 3 && output.size(1) == members && target.scalar_type() == at::kLong &&
                      target.sizes() == output.sizes().slice(0, 2),
                  loss, " takes embeddings [n, ", members, ", width] and class indices [n, ", members, "], but got ",
                  output.sizes(), " and ", target.sizes());
}

struct ContrastiveConfig {
  double margin = 1;

  template <class V>
  void visit(V& v) {
    v("margin", margin, "samples of different classes that are farther apart than this cost nothing", config::above(0));
  }
};

class Contrastive final : public Loss {
 public:
  explicit Contrastive(double margin) : margin_(margin) {}

  at::Tensor mean(const at::Tensor& output, const at::Tensor& target) const override {
    check_members("contrastive", 2, output, target);
    const at::Tensor distance = at::pairwise_distance(output.select(1, 0), output.select(1, 1));
    const at::Tensor same = target.select(1, 0).eq(target.select(1, 1)).to(output.scalar_type());
    const at::Tensor gap = (margin_ - distance).clamp_min(0);
    return (same * distance.square() + (1 - same) * gap.square()).mean() / 2;
  }

 private:
  double margin_;
};

struct TripletConfig {
  double margin = 0.2;
  std::string distance = "squared";
  std::string mining = "given";

  template <class V>
  void visit(V& v) {
    v("margin", margin, "how much farther away samples of other classes must be than those of the same class",
      config::above(0));
    v("distance", distance, "distance between embeddings", config::one_of({"squared", "euclidean"}));
    v("mining", mining,
      "given: the triplets of the dataset; batch_hard: the hardest ones in a rank's part of the batch, which depend on "
      "the number of ranks",
      config::one_of({"given", "batch_hard"}));
  }
};

class Triplet final : public Loss {
 public:
  explicit Triplet(const TripletConfig& config)
      : margin_(config.margin), squared_(config.distance == "squared"), hardest_(config.mining == "batch_hard") {}

  at::Tensor mean(const at::Tensor& output, const at::Tensor& target) const override {
    if (hardest_) return mean_of_hardest(output, target);
    check_members("triplet with mining: given", 3, output, target);
    return costs(output.select(1, 0), output.select(1, 1), output.select(1, 2)).mean();
  }

 private:
  // [n, width] each -> [n]
  at::Tensor costs(const at::Tensor& anchor, const at::Tensor& positive, const at::Tensor& negative) const {
    return (distance(anchor, positive) - distance(anchor, negative) + margin_).clamp_min(0);
  }

  at::Tensor distance(const at::Tensor& a, const at::Tensor& b) const {
    return squared_ ? (a - b).square().sum(-1) : at::pairwise_distance(a, b);
  }

  // Returns the mean over all embeddings. Embeddings without another one of their class, or of a different class, cost
  // nothing.
  at::Tensor mean_of_hardest(const at::Tensor& output, const at::Tensor& target) const {
    require_of_loss(output.dim() == target.dim() + 1 && target.scalar_type() == at::kLong &&
                        target.sizes() == output.sizes().slice(0, static_cast<std::size_t>(target.dim())),
                    "triplet takes embeddings [n, ..., width] and class indices [n, ...], but got ", output.sizes(),
                    " and ", target.sizes());
    const at::Tensor all = output.flatten(0, -2), classes = target.flatten();
    at::Tensor farthest, nearest, counted;
    {
      const at::NoGradGuard no_grad;
      const at::Tensor lengths = all.square().sum(1), products = all.matmul(all.t());
      const at::Tensor distances = lengths.unsqueeze(0) + lengths.unsqueeze(1) - 2 * products;
      const at::Tensor same = classes.unsqueeze(0).eq(classes.unsqueeze(1));
      const at::Tensor others = same.logical_and(at::eye(all.size(0), classes.options()).eq(0));
      constexpr double kFar = std::numeric_limits<double>::infinity();
      farthest = distances.masked_fill(others.logical_not(), -kFar).argmax(1);
      nearest = distances.masked_fill(same, kFar).argmin(1);
      counted = others.any(1).logical_and(same.logical_not().any(1)).to(all.scalar_type());
    }
    return (counted * costs(all, all.index_select(0, farthest), all.index_select(0, nearest))).mean();
  }

  double margin_;
  bool squared_, hardest_;
};

const bool contrastive = Losses::global().add<ContrastiveConfig>(
    "contrastive", "distances of pairs: small within a class, at least the margin between classes",
    [](const ContrastiveConfig& config) { return std::make_shared<Contrastive>(config.margin); });

const bool triplet = Losses::global().add<TripletConfig>(
    "triplet", "samples of other classes must be farther away than those of the same class, by the margin",
    [](const TripletConfig& config) { return std::make_shared<Triplet>(config); });

}  // namespace
}  // namespace phalanx
