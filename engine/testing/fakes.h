// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ops/scalar_tensor.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/strategies/strategy.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {

// Parts of an engine that do nothing except recording their calls in a common list.
using Calls = std::vector<std::string>;

class FakeLoader final : public Loader {
 public:
  explicit FakeLoader(std::int64_t batches, Calls* calls = nullptr) : batches_(batches), calls_(calls) {}

  std::int64_t batches() const override { return batches_; }
  void start_epoch(std::int64_t epoch, std::int64_t cursor) override {
    if (calls_) calls_->push_back("epoch " + std::to_string(epoch));
    cursor_ = cursor;
  }
  bool next(Batch& batch) override {
    if (cursor_ == batches_) return false;
    batch.valid = batch.global_rows = ++cursor_;
    return true;
  }

 private:
  std::int64_t batches_, cursor_ = 0;
  Calls* calls_;
};

/// A step whose loss is the number of the batch in its epoch, from 1.
class FakeStep final : public Step {
 public:
  Result run(const Batch& batch, const Watch& watch) override {
    Result result = evaluate(batch, watch);
    result.updated = updates;
    watch(Stage::kBackwardCriterion, result);
    watch(Stage::kBackward, result);
    return result;
  }
  Result evaluate(const Batch& batch, const Watch& watch) override {
    Result result{.outputs = {at::scalar_tensor(0)}, .weight = batch.weight()};
    watch(Stage::kForward, result);
    result.loss = at::scalar_tensor(static_cast<double>(batch.valid));
    watch(Stage::kForwardCriterion, result);
    return result;
  }

  bool updates = false;  // run() claims to have updated the parameters
};

class FakeOptimizer final : public Optimizer {
 public:
  explicit FakeOptimizer(Calls* calls = nullptr) : calls_(calls) {}

  void attach(std::vector<Slice>) override {}
  void update() override {
    if (calls_) calls_->push_back("update");
  }
  void exclude(const std::set<std::string>&) override {}
  double learning_rate() const override { return 0; }
  void set_learning_rate(double) override {}
  std::int64_t updates() const override { return 0; }
  void set_updates(std::int64_t) override {}

 private:
  Calls* calls_;
};

class FakeStrategy final : public Strategy {
 public:
  explicit FakeStrategy(Calls* calls = nullptr) : calls_(calls) {}

  std::vector<Slice> attach(const FlatParameters&, Cut) override { return call("attach"); }
  void attach_state(const std::vector<StateTensor>&) override {}
  void reset() override {}
  void before_update(std::int64_t step) override { call("before_update " + std::to_string(step)); }
  std::vector<CommunicatorPtr> gradient_groups() const override { return {nullptr}; }
  void after_update(std::int64_t step) override { call("after_update " + std::to_string(step)); }
  bool replicas_equal() const override { return true; }
  void sum_over_slices(at::Tensor&) override {}
  void gather_slices() override {}
  StateDict state() override { return {}; }
  void finish() override { call("finish"); }

 private:
  std::vector<Slice> call(const std::string& what) {
    if (calls_) calls_->push_back(what);
    return {};
  }

  Calls* calls_;
};

inline FlatParameters no_parameters() {
  std::optional<FlatParameters> none;
  run_ranks("inproc", 1, [&](const CommunicatorPtr& memory) { none.emplace(NamedTensors{}, *memory, 1); });
  return *none;
}

/// An engine that consists of these parts.
struct FakeEngine {
  Calls calls{};
  FakeLoader loader;
  FakeStep step{};
  FakeOptimizer optimizer{&calls};
  FakeStrategy strategy{&calls};
  FlatParameters parameters = no_parameters();
  Engine engine{step, optimizer, strategy};

  explicit FakeEngine(std::int64_t batches) : loader(batches, &calls) {}

  State train(State state) { return engine.train(parameters, loader, std::move(state)); }
};

}  // namespace phalanx::testing
