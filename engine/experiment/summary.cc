// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/summary.h"

#include <ATen/Parallel.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "engine/checkpoint/provenance.h"
#include "engine/hooks/failure_cost.h"
#include "engine/hooks/restarts.h"
#include "framework/base/config/config.h"
#include "framework/base/device_memory.h"
#include "framework/observe/times/step_times_json.h"
#include "models/matrix_peak.h"

namespace phalanx {
namespace {

template <class Named>
nlohmann::ordered_json by_name(const Named& values) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : values) object[name] = value;
  return object;
}

// Returns the operations of training and their share of the peak. The peak is measured on one core, assuming that all
// cores are equally fast.
nlohmann::ordered_json matrix_products(const ExperimentContext& context, double operations_per_sample,
                                       double samples_per_second) {
  if (operations_per_sample == 0) return nullptr;
  const double peak = measure_matrix_peak(PeakEffort::kQuick);
  const double cores = static_cast<double>(context.world->size()) * at::get_num_threads();
  return {{"operations_per_sample", operations_per_sample},
          {"peak_of_core", peak},
          {"share_of_peak", operations_per_sample * samples_per_second / (peak * cores)}};
}

nlohmann::ordered_json traffic_to_json(const std::optional<StepCommunication>& traffic) {
  if (!traffic) return nullptr;
  return {{"bytes_per_step", traffic->bytes}, {"collectives_per_step", traffic->collectives}};
}

nlohmann::ordered_json expectations_to_json(const std::vector<ExpectationResult>& results) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const auto& [key, wanted, got, value, met] : results) {
    nlohmann::ordered_json one = {{"key", key}, {"wanted", wanted}, {"got", got}};
    one["value"] = value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
    one["met"] = met;
    all.push_back(std::move(one));
  }
  return all;
}

// Returns the ranks that the run has lost and gone on without.
nlohmann::ordered_json lost_ranks_to_json(const Recovery& recovery) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const auto& [rank, reason, step, seconds] : recovery.lost) {
    all.push_back({{"rank", rank}, {"reason", reason}, {"step", step}, {"seconds", seconds}});
  }
  return all;
}

// Returns the ranks that have taken the places of lost ones, and those that have joined in addition.
nlohmann::ordered_json returned_ranks_to_json(const Recovery& recovery) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const auto& one : recovery.returned) {
    all.push_back(
        {{"rank", one.rank},
         {"in_place_of", one.in_place_of < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(one.in_place_of)},
         {"source", one.source},
         {"step", one.step},
         {"seconds", one.seconds}});
  }
  return all;
}

}  // namespace

std::string summary_text(const ExperimentConfig& config, const ExperimentContext& context,
                         const ExperimentResult& result, const RunTimes& times) {
  ExperimentConfig all = config;
  const std::string config_text = config::dump(all);
  nlohmann::ordered_json strategy = {{"name", result.strategy}};
  for (const auto& [name, value] : result.metrics) strategy[name] = value;
  nlohmann::ordered_json loader = {{"shares", config.loader.shares}};
  if (!result.shares.empty()) loader["last_shares"] = result.shares;
  if (config.loader.shares == "measured") loader["reproducible"] = false;
  if (result.unreadable) {
    loader["unreadable"] = result.unreadable->samples;
    loader["replaced"] = result.unreadable->replaced;
  }
  nlohmann::ordered_json recording;
  if (result.recorded_bytes) {
    recording = {{"folder", config.framework.record}, {"bytes", *result.recorded_bytes}};
  }
  nlohmann::ordered_json device = {{"name", context.device.str()}};
  if (!context.device.is_cpu()) device["memory_peak_bytes"] = peak_bytes(context.device);
  const double rate = times.samples_per_second();
  const Recovery none;
  const Recovery& recovery = context.recovery ? *context.recovery : none;
  const FailureCost failures = failure_cost(context.recovery.get(), context.started);
  return nlohmann::ordered_json{{"name", config.name},
                                {"ranks", context.world->size()},
                                {"device", device},
                                {"steps", result.steps},
                                {"stopped", result.stopped},
                                {"early_stop", result.early_stop},
                                {"failed_checkpoints", result.failed_checkpoints},
                                {"repaired_tensors", result.repaired_tensors},
                                {"restarts", restarts_of_job().count},
                                {"lost_ranks", lost_ranks_to_json(recovery)},
                                {"returned_ranks", returned_ranks_to_json(recovery)},
                                {"lost_seconds", failures.seconds},
                                {"goodput", failures.goodput},
                                {"train_seconds", times.training_seconds()},
                                {"seconds_to_first_step", times.seconds_to_first_step()},
                                {"samples_per_second", rate},
                                {"throughput", rate},
                                {"peak_memory", result.peak_memory},
                                {"traffic", traffic_to_json(result.traffic)},
                                {"matrix_products", matrix_products(context, result.operations_per_sample, rate)},
                                {"bucket_bytes", result.bucket_bytes},
                                {"loader", loader},
                                {"strategy", strategy},
                                {"recording", recording},
                                {"update", by_name(result.update)},
                                {"train", by_name(result.train)},
                                {"validation", by_name(result.validation)},
                                {"test", by_name(result.test)},
                                {"chosen_by", result.chosen_by},
                                {"expectations", expectations_to_json(result.expectations)},
                                {"step_time", spreads_to_json(times.step_times())},
                                {"provenance", by_name(provenance(config_text))}}
             .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace phalanx
