// SPDX-License-Identifier: Apache-2.0
// The other losses, which compare each element of an output with the same element of a target of the same shape.
#include <ATen/TensorOperators.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mse_loss.h>

#include <functional>
#include <string>
#include <utility>

#include "engine/loss/loss.h"
#include "engine/loss/require.h"
#include "framework/base/config/no_fields.h"

namespace phalanx {
namespace {

class Elementwise final : public Loss {
 public:
  using Mean = std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)>;

  Elementwise(std::string name, Mean mean) : name_(std::move(name)), mean_(std::move(mean)) {}

  at::Tensor mean(const at::Tensor& output, const at::Tensor& target) const override {
    require_of_loss(output.sizes() == target.sizes(), name_,
                    " takes an output and a target of the same shape, but got ", output.sizes(), " and ",
                    target.sizes());
    return mean_(output, target.to(output.scalar_type()));
  }

 private:
  std::string name_;
  Mean mean_;
};

struct HuberConfig {
  double delta = 1;

  template <class V>
  void visit(V& v) {
    v("delta", delta, "errors beyond it count linearly, smaller ones by their square", config::above(0));
  }
};

const bool automatic =
    Losses::global().add<NoFields>("auto", "the default loss of the task", [](const NoFields&) { return nullptr; });

const bool mse = Losses::global().add<NoFields>("mse", "mean squared error", [](const NoFields&) {
  return std::make_shared<Elementwise>(
      "mse", [](const at::Tensor& output, const at::Tensor& target) { return at::mse_loss(output, target); });
});

const bool mae = Losses::global().add<NoFields>("mae", "mean absolute error", [](const NoFields&) {
  return std::make_shared<Elementwise>(
      "mae", [](const at::Tensor& output, const at::Tensor& target) { return at::l1_loss(output, target); });
});

const bool huber = Losses::global().add<HuberConfig>(
    "huber", "squared error for small errors, absolute error for large ones", [](const HuberConfig& config) {
      return std::make_shared<Elementwise>("huber", [config](const at::Tensor& output, const at::Tensor& target) {
        return at::huber_loss(output, target, at::Reduction::Mean, config.delta);
      });
    });

const bool binary_cross_entropy = Losses::global().add<NoFields>(
    "binary_cross_entropy", "cross entropy of logits and targets from 0 to 1, element by element", [](const NoFields&) {
      return std::make_shared<Elementwise>("binary_cross_entropy",
                                           [](const at::Tensor& output, const at::Tensor& target) {
                                             return at::binary_cross_entropy_with_logits(output, target);
                                           });
    });

// ListNet (Cao et al. 2007, Learning to Rank, section 4.3): the cross entropy between the top-one probabilities of the
// relevances and of the scores.
const bool list_net = Losses::global().add<NoFields>(
    "list_net", "cross entropy of the softmax of scores and the softmax of relevances [n, items]", [](const NoFields&) {
      return std::make_shared<Elementwise>("list_net", [](const at::Tensor& output, const at::Tensor& target) {
        return -(target.softmax(-1) * at::log_softmax(output, -1)).sum(-1).mean();
      });
    });

}  // namespace
}  // namespace phalanx
