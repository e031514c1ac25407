// SPDX-License-Identifier: Apache-2.0
// Mean and standard deviation (n - 1) of the losses of the last `window` batches, a smoothed training curve. The loss
// of a batch is the mean over everything that counts in it on all ranks, which must add the same batches. take() does
// not start again: the window keeps moving.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <deque>
#include <utility>
#include <vector>

#include "engine/meters/across_ranks.h"
#include "engine/meters/exact_sum.h"
#include "engine/meters/meter.h"

namespace phalanx {
namespace {

struct MovingAverageConfig {
  std::int64_t window = 100;

  template <class V>
  void visit(V& v) {
    v("window", window, "number of batches", config::between(1, 1e6));
  }
};

// Returns the mean and the deviation of values, in the order of the batches.
Metrics mean_and_deviation(const std::vector<double>& values) {
  ExactSum sum, squares;
  for (const double value : values) sum.add(value);
  const auto n = static_cast<double>(values.size());
  const double mean = values.empty() ? 0 : sum.value() / n;
  for (const double value : values) squares.add((value - mean) * (value - mean));
  return {{"moving_loss", mean}, {"moving_loss_std", n > 1 ? std::sqrt(squares.value() / (n - 1)) : 0}};
}

class MovingAverage final : public Meter {
 public:
  explicit MovingAverage(const MovingAverageConfig& config) : window_(static_cast<std::size_t>(config.window)) {}

  void add(const Batch&, const Step::Result& result) override {
    const double weight = result.weight;
    keep({.loss = weight > 0 ? result.loss : at::Tensor(), .sum = 0, .weight = weight});
  }
  void skip_batch() override { keep({}); }

  Metrics take(Communicator& group) override {
    const auto batches = shares_.size();
    const at::Tensor all = gather_ranks(state().at(0), group);
    std::vector<double> losses;
    for (std::size_t batch = 0; batch < batches; ++batch) {
      ExactSum sum, weight;
      for (int rank = 0; rank < group.size(); ++rank) {
        const auto* share = all.data_ptr<double>() + 2 * (static_cast<std::size_t>(rank) * batches + batch);
        sum.add(share[0]);
        weight.add(share[1]);
      }
      if (weight.value() > 0) losses.push_back(sum.value() / weight.value());
    }
    return mean_and_deviation(losses);
  }

  // Returns [2 n]: sum and weight of each batch.
  State state() override {
    read_losses();
    at::Tensor all = at::empty({static_cast<std::int64_t>(2 * shares_.size())}, at::kDouble);
    auto* next = all.data_ptr<double>();
    for (const auto& share : shares_) {
      *next++ = share.sum;
      *next++ = share.weight;
    }
    return {all};
  }

  // The windows of all ranks contain the same batches.
  void merge_state(const State& state) override {
    read_losses();
    const auto* number = state.at(0).data_ptr<double>();
    shares_.resize(static_cast<std::size_t>(state[0].numel() / 2));
    for (auto& share : shares_) {
      share.sum += *number++;
      share.weight += *number++;
    }
  }
  void skip_state(const State& state) override { shares_.resize(static_cast<std::size_t>(state.at(0).numel() / 2)); }

 private:
  struct Share {
    at::Tensor loss{};  // defined until it has been read into `sum`
    double sum = 0, weight = 0;
  };

  void keep(Share share) {
    shares_.push_back(std::move(share));
    if (shares_.size() > window_) shares_.pop_front();
  }

  // Reads all losses together, because each read waits for the device.
  void read_losses() {
    std::vector<at::Tensor> losses;
    for (const auto& share : shares_) {
      if (share.loss.defined()) losses.push_back(share.loss);
    }
    if (losses.empty()) return;
    const at::Tensor all = at::stack(losses).to(at::kCPU, at::kDouble);
    const auto* loss = all.data_ptr<double>();
    for (auto& share : shares_) {
      if (!share.loss.defined()) continue;
      share.sum = *loss++ * share.weight;
      share.loss.reset();
    }
  }

  std::size_t window_;
  std::deque<Share> shares_;  // this rank's shares of the last batches
};

const bool moving_average_registered = Meters::global().add<MovingAverageConfig>(
    "moving_average", "mean and standard deviation of the loss over the last batches",
    [](const MovingAverageConfig& config) { return std::make_unique<MovingAverage>(config); });

}  // namespace
}  // namespace phalanx
