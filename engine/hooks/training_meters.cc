// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/training_meters.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <utility>

#include "framework/base/config/config.h"

namespace phalanx {
namespace {

constexpr const char* kMetersConfig = "config";

at::Tensor as_text(const std::vector<MeterConfig>& meters) {
  const std::string yaml = config::dump_as("meters", meters);
  at::Tensor letters = at::empty({static_cast<std::int64_t>(yaml.size())}, at::kByte);
  std::ranges::copy(yaml, letters.data_ptr<std::uint8_t>());
  return letters;
}

// Returns the meters that are shown at the end of an epoch: only the loss, because other meters may have a hundred
// metrics.
std::vector<MeterConfig> meters_of_epochs(const WatchConfig& watch) {
  std::vector<MeterConfig> meters;
  for (const auto& config : watch.meters) {
    if (config.meter.selected() == "loss") meters.push_back(config);
  }
  return meters;
}

}  // namespace

TrainingMeters::TrainingMeters(const WatchConfig& watch, const RunLength& length)
    : meters_(watch.meters), epoch_meters_(meters_of_epochs(watch)), config_(as_text(watch.meters)), length_(length) {}

void TrainingMeters::add(const State& state) {
  meters_.add(state.batch, state.result);
  epoch_meters_.add(state.batch, state.result);
  epoch_has_steps_ = true;
}

Metrics TrainingMeters::take_epoch(const State& state, Communicator& readers) {
  const auto so_far = epoch_meters_.state();
  Metrics metrics = epoch_meters_.take(readers);
  // A run that ends within an epoch may be resumed there, so its meters must continue.
  if (!length_.ends_epoch(state.epoch, state.cursor)) epoch_meters_.load(so_far, true);
  if (!std::exchange(epoch_has_steps_, false)) return {};  // a resumed run had no step left here
  for (auto& [name, value] : metrics) name = "mean " + name;
  return metrics;
}

std::vector<CheckpointPart> TrainingMeters::parts(const CommunicatorPtr& readers, bool saves) {
  return {part("meters", meters_, readers, saves), part("epoch_meters", epoch_meters_, readers, saves)};
}

CheckpointPart TrainingMeters::part(const std::string& name, MeterSet& meters, const CommunicatorPtr& readers,
                                    bool saves) const {
  const auto save = [this, &meters, saves] {
    if (!saves) return NamedTensors();
    NamedTensors state = meters.state();
    state.emplace_back(kMetersConfig, config_);
    return state;
  };
  const auto load = [this, &meters, readers](const SavedRanks& saved) {
    for (int rank = 0; rank < saved.ranks; ++rank) {
      NamedTensors state = saved.of(rank);
      if (state.empty()) continue;
      const auto config = std::ranges::find(state, kMetersConfig, &NamedTensors::value_type::first);
      if (config == state.end() || !at::equal(config->second, config_)) return;
      state.erase(config);
      meters.load(state, rank % readers->size() == readers->rank());
    }
  };
  return {.name = name, .save = save, .load = load};
}

}  // namespace phalanx
