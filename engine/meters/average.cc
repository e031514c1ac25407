// SPDX-License-Identifier: Apache-2.0
// Mean and sample standard deviation (n - 1) over all elements of the outputs or the targets.
//
// The sum and the sum of squares are exact, and so is n * squares - sum^2, up to a final rounding. There is no
// cancellation, however small the deviation is compared to the mean.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "engine/meters/across_ranks.h"
#include "engine/meters/exact_sum.h"
#include "engine/meters/labels.h"
#include "engine/meters/meter.h"

namespace phalanx {
namespace {

struct AverageConfig {
  std::string of = "output";

  template <class V>
  void visit(V& v) {
    v("of", of, "the model's outputs or the targets", config::one_of({"output", "target"}));
  }
};

struct Sums {
  ExactSum sum, squares;
  std::int64_t count = 0;
};

// Returns the sum as three doubles, which hold 159 of its bits. This is more than numbers within a factor of 2^50 have.
std::array<double, 3> parts_of(ExactSum sum) {
  std::array<double, 3> parts;
  for (auto& part : parts) {
    part = sum.value();
    sum.add(-part);
  }
  return parts;
}

double deviation_of(const Sums& sums) {
  if (sums.count < 2) return 0;
  const auto n = static_cast<double>(sums.count);
  const auto sum = parts_of(sums.sum), squares = parts_of(sums.squares);
  ExactSum spread;  // n * squares - sum^2
  for (const double part : squares) spread.add_product(n, part);
  for (const double a : sum) {
    for (const double b : sum) spread.add_product(-a, b);
  }
  return std::sqrt(spread.value() / n / (n - 1));
}

class Average final : public Meter {
 public:
  explicit Average(const AverageConfig& config) : of_output_(config.of == "output"), name_(config.of) {}

  void add(const Batch& batch, const Step::Result& result) override {
    const at::Tensor values = counted(batch, result).to(at::kCPU, at::kDouble).contiguous();
    const auto* value = values.data_ptr<double>();
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      sums_.sum.add(value[i]);
      sums_.squares.add_product(value[i], value[i]);
    }
    sums_.count += values.numel();
  }

  Metrics take(Communicator& group) override {
    Sums all = std::exchange(sums_, {});
    sum_over_ranks({all.sum.cells(), all.squares.cells(), {&all.count, 1}}, group);
    const double mean = all.count > 0 ? all.sum.value() / static_cast<double>(all.count) : 0;
    return {{name_ + "_mean", mean}, {name_ + "_std", deviation_of(all)}};
  }

  State state() override {
    const auto sum = sums_.sum.cells(), squares = sums_.squares.cells();
    at::Tensor all = at::empty({1 + static_cast<std::int64_t>(sum.size() + squares.size())}, at::kLong);
    auto* first = all.data_ptr<std::int64_t>();
    *first = sums_.count;
    std::ranges::copy(squares, std::ranges::copy(sum, first + 1).out);
    return {all};
  }

  void merge_state(const State& state) override {
    const auto* number = state.at(0).data_ptr<std::int64_t>();
    sums_.count += *number++;
    for (auto& cell : sums_.sum.cells()) cell += *number++;
    for (auto& cell : sums_.squares.cells()) cell += *number++;
  }

 private:
  // Returns the elements that do not belong to ignored targets.
  at::Tensor counted(const Batch& batch, const Step::Result& result) const {
    if (batch.row_weights.defined()) {
      const auto classes = classes_of(batch, result);
      return of_output_ ? classes.scores : classes.target;
    }
    return (of_output_ ? result.whole_output() : batch.targets.at(0)).narrow(0, 0, batch.valid);
  }

  bool of_output_;
  std::string name_;
  Sums sums_;
};

const bool average_registered =
    Meters::global().add<AverageConfig>("average", "mean and standard deviation of the outputs or the targets",
                                        [](const AverageConfig& config) { return std::make_unique<Average>(config); });

}  // namespace
}  // namespace phalanx
