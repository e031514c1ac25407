// SPDX-License-Identifier: Apache-2.0
// The rules whose only state is a clock. x: values of the shard, u: an update, s: its scale, t: its staleness.
//
//   none   x
//   zero   0
//   copy   s u
//   max    max(x, s u)
//   lerp   x + w (s u - x)         w: `weight`
//   add    x + s f u / (1 + t)^p   f: `factor`. p: `staleness_power`; 1 divides the step by the staleness, as Zhang,
//                                  Gupta, Lian and Liu 2015 (Staleness-aware Async-SGD, equation 5) do.
//
//   sum_of_clock   s u if u is the first update of a later clock than the one before, else x + s u: a sum that
//                  starts again in every clock
//
// Integers are added exactly: their scale must be 1.
#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/full.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/maximum.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "framework/base/config/no_fields.h"
#include "framework/base/error.h"
#include "framework/ps/rules/update_rule.h"

namespace phalanx::ps {
namespace {

class None final : public StatelessRule {
 public:
  void apply(const at::Tensor&, const UpdateInfo&) override {}
};

class Zero final : public StatelessRule {
 public:
  void apply(const at::Tensor&, const UpdateInfo&) override { values_.zero_(); }
};

class Copy final : public StatelessRule {
 public:
  void apply(const at::Tensor& update, const UpdateInfo& info) override {
    values_.copy_(update);
    if (info.scale != 1) values_.mul_(info.scale);
  }
};

class Max final : public StatelessRule {
 public:
  void apply(const at::Tensor& update, const UpdateInfo& info) override {
    at::maximum_out(values_, values_, info.scale == 1 ? update : update.mul(info.scale));
  }
};

struct LerpConfig {
  double weight = 0.5;

  template <class V>
  void visit(V& v) {
    v("weight", weight, "how far values move towards the update", config::Limits{.min = 0, .max = 1});
  }
};

class Lerp final : public StatelessRule {
 public:
  explicit Lerp(const LerpConfig& config) : weight_(config.weight) {}

  void attach(const at::Tensor& values) override {
    if (!at::isFloatingType(values.scalar_type())) throw ConfigError("rule lerp: integers cannot be interpolated");
    StatelessRule::attach(values);
  }

  void apply(const at::Tensor& update, const UpdateInfo& info) override {
    // If a value equals the update, lerp_ leaves it bitwise unchanged.
    values_.lerp_(info.scale == 1 ? update : update * info.scale, weight_);
  }

 private:
  double weight_;
};

struct AddConfig {
  double factor = 1;
  double staleness_power = 0;

  template <class V>
  void visit(V& v) {
    v("factor", factor, "what every update is multiplied by");
    v("staleness_power", staleness_power, "p: updates computed from values t updates old are divided by (1 + t)^p",
      config::at_least(0));
  }
};

class Add final : public StatelessRule {
 public:
  explicit Add(const AddConfig& config) : config_(config) {}

  void attach(const at::Tensor& values) override {
    const bool exact = config_.factor == 1 && config_.staleness_power == 0;
    if (!exact && !at::isFloatingType(values.scalar_type())) {
      throw ConfigError("rule add: integers are added as they are; leave out factor and staleness_power");
    }
    StatelessRule::attach(values);
  }

  void apply(const at::Tensor& update, const UpdateInfo& info) override {
    const double age = 1 + static_cast<double>(info.staleness);
    const double factor = info.scale * config_.factor * std::pow(age, -config_.staleness_power);
    if (factor == 1) {
      values_.add_(update);
    } else {
      values_.add_(update, factor);
    }
  }

 private:
  AddConfig config_;
};

class SumOfClock final : public UpdateRule {
 public:
  void attach(const at::Tensor& values) override { values_ = values; }

  void apply(const at::Tensor& update, const UpdateInfo& info) override {
    auto& clock = *clock_.mutable_data_ptr<std::int64_t>();
    if (info.clock > clock) {
      clock = info.clock;
      values_.copy_(update);
      if (info.scale != 1) values_.mul_(info.scale);
    } else if (info.scale == 1) {
      values_.add_(update);
    } else {
      values_.add_(update, info.scale);
    }
  }

  void read_by(int) override {}
  StateDict state() override { return {{"clock", clock_}}; }

 private:
  at::Tensor values_;
  at::Tensor clock_ = at::full({1}, -1, at::kLong);  // clock of the sum
};

template <class Rule>
bool register_rule(const char* name, const char* help) {
  return UpdateRules::global().add<NoFields>(name, help, [](const NoFields&) { return std::make_unique<Rule>(); });
}

const bool none = register_rule<None>("none", "updates change nothing");
const bool zero = register_rule<Zero>("zero", "values become zero; the update does not matter");
const bool copy = register_rule<Copy>("copy", "values become the update");
const bool max = register_rule<Max>("max", "values become the larger of each element and its update");
const bool sum_of_clock =
    register_rule<SumOfClock>("sum_of_clock", "updates of a clock are added; the next clock begins at zero");
const bool lerp =
    UpdateRules::global().add<LerpConfig>("lerp", "values move part of the way towards the update",
                                          [](const LerpConfig& config) { return std::make_unique<Lerp>(config); });
const bool add = UpdateRules::global().add<AddConfig>(
    "add", "updates are added", [](const AddConfig& config) { return std::make_unique<Add>(config); });

}  // namespace
}  // namespace phalanx::ps
