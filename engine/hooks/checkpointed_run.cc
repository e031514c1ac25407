// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/checkpointed_run.h"

#include <sstream>

#include "datasets/dataset.h"
#include "framework/base/config/config.h"
#include "framework/base/storage/crc32c.h"

namespace phalanx {
namespace {

// Returns a section as one line, without the folders of files.
std::string in_one_line(const std::string& key, const std::string& yaml) {
  std::istringstream lines(yaml);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    const auto begin = line.find_first_not_of(' ');
    if (begin == std::string::npos || line == key + ":" || line.compare(begin, 5, "root:") == 0) continue;
    text += (text.empty() ? "" : ", ") + line.substr(begin);
  }
  return text;
}

// Describes the samples.
std::string describe(const Datasets::Choice& dataset) {
  return in_one_line("dataset", config::dump_as("dataset", dataset));
}

// Describes the order of the samples.
std::string order_of(const LoaderConfig& loader) {
  std::string text = loader.shuffle ? "true" : "false";
  if (loader.sampler.selected() != "auto") {
    text += ", sampler " + in_one_line("sampler", config::dump_as("sampler", loader.sampler));
  }
  if (loader.last_batch != "smaller") text += ", last_batch: " + loader.last_batch;
  return text;
}

}  // namespace

Manifest::Strings CheckpointedRun::identity() const {
  Manifest::Strings words{{"seed", std::to_string(config.seed)},
                          {"dataset", describe(config.dataset)},
                          {"number of training samples", std::to_string(length.samples)},
                          {"loader.shuffle", order_of(config.loader)},
                          {"train.global_batch_size", std::to_string(config.train.global_batch_size)}};
  if (!fitted.empty()) {
    words.emplace_back("CRC-32C of dataset.json", std::to_string(crc32c(fitted.data(), fitted.size())));
  }
  return words;
}

// Batches of other sizes than the configured one are counted by their samples, since the ranks that continue may have
// batches of another size.
Position CheckpointedRun::position_of(const State& state) const {
  Position position{.step = state.step, .epoch = state.epoch, .batch = state.cursor};
  if (length.batch != length.configured.batch || state.epoch == length.continued.epoch) {
    position.samples = length.samples_before(state.epoch, state.cursor);
  }
  return position;
}

void CheckpointedRun::set_position(const Manifest& manifest, bool end_to_come, State& state) const {
  const Position& position = manifest.position;
  state.step = position.step;
  state.epoch = position.epoch;
  state.cursor = position.batch;
  const auto samples = position.samples >= 0 ? position.samples : position.batch * length.configured.batch;
  if (samples != length.samples_before(state.epoch, state.cursor)) {
    state.cursor = 0;
    length.continued = {.epoch = state.epoch, .batches = loader.skip(state.epoch, samples), .skipped = samples};
  }
  length.count_steps(state.step, state.epoch, state.cursor);
  last_evaluation = {manifest.metrics, manifest.tested_at};
  const bool over = state.step >= length.steps;
  if (over && end_to_come) state.cursor = length.batches_of(state.epoch);
  state.stop = over && !end_to_come;
}

Manifest CheckpointedRun::manifest_at(const Position& position) const {
  return {.position = position,
          .updates = replica.optimizer().updates(),
          .metrics = last_evaluation.metrics,
          .tested_at = last_evaluation.step};
}

bool CheckpointedRun::goes_back() const { return recovery != nullptr && !replica.goes_on_from_own_state(); }

}  // namespace phalanx
