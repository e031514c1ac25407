// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/meters/meter.h"
#include "framework/base/error.h"

namespace phalanx {

/// One meter in a list of a config: {meter: accuracy}, {meter: {name: class_error, k: 5}}.
struct MeterConfig {
  Meters::Choice meter;

  template <class V>
  void visit(V& v) {
    v("meter", meter, "metric to measure");
  }
};

/// A list of meters that see the same batches.
class MeterSet {
 public:
  explicit MeterSet(std::vector<std::unique_ptr<Meter>> meters) : meters_(std::move(meters)) {}
  explicit MeterSet(const std::vector<MeterConfig>& meters) {
    for (const auto& config : meters) meters_.push_back(config.meter.make());
  }

  void add(const Batch& batch, const Step::Result& result) {
    for (auto& meter : meters_) result.elsewhere() ? meter->skip_batch() : meter->add(batch, result);
  }

  /// Returns the metrics of all meters, in order. Collective.
  Metrics take(Communicator& group) {
    Metrics all;
    for (auto& meter : meters_) {
      for (auto& metric : meter->take(group)) all.push_back(std::move(metric));
    }
    return all;
  }

  /// Returns the state of all meters, named by the indices of the meter and of its tensor: "0/1". See Meter.
  std::vector<std::pair<std::string, at::Tensor>> state() {
    std::vector<std::pair<std::string, at::Tensor>> all;
    for (std::size_t i = 0; i < meters_.size(); ++i) {
      const auto state = meters_[i]->state();
      for (std::size_t j = 0; j < state.size(); ++j) {
        all.emplace_back(std::to_string(i) + "/" + std::to_string(j), state[j].clone());
      }
    }
    return all;
  }

  /// Absorbs the state if `mine`, and passes over it otherwise. Throws DataError if it belongs to other meters.
  void load(const std::vector<std::pair<std::string, at::Tensor>>& saved, bool mine) {
    const std::map<std::string, at::Tensor> by_name(saved.begin(), saved.end());
    std::size_t found = 0;
    for (std::size_t i = 0; i < meters_.size(); ++i) {
      Meter::State state = meters_[i]->state();
      for (std::size_t j = 0; j < state.size(); ++j, ++found) {
        const auto tensor = by_name.find(std::to_string(i) + "/" + std::to_string(j));
        if (tensor == by_name.end()) throw DataError("the checkpoint is of a run with other meters");
        state[j] = tensor->second;
      }
      mine ? meters_[i]->merge_state(state) : meters_[i]->skip_state(state);
    }
    if (found != saved.size()) throw DataError("the checkpoint is of a run with other meters");
  }

 private:
  std::vector<std::unique_ptr<Meter>> meters_;
};

}  // namespace phalanx
