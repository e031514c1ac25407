// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/rank.h"

#include <ATen/Parallel.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/carried_state.h"
#include "engine/experiment/experiment.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/log.h"
#include "launch/job/world.h"
#include "launch/program.h"
#include "tools/bench_train/turns.h"
#include "tools/config/load_checked.h"

namespace phalanx::bench_train {

namespace {

SampleSpec sample_of_files(const nlohmann::json& job) {
  const auto &input = job.at("input"), &classes = job.at("classes");
  return job.at("text").get<bool>() ? language_samples(input.at(0), classes) : classification_samples(input, classes);
}

}  // namespace

std::string to_json(const RankJob& job) {
  const auto& data = job.data;
  nlohmann::json json{{"config", job.config},           {"workload", job.workload},
                      {"run_dir", job.run_dir},         {"plain_malloc", job.plain_malloc},
                      {"has_barrier", job.has_barrier}, {"inputs", data.inputs},
                      {"targets", data.targets},        {"samples", data.samples}};
  if (!data.inputs.empty()) {
    json["input"] = data.sample.inputs[0].shape;
    json["classes"] = data.sample.targets[0].classes;
    json["text"] = is_text(data.sample);
  }
  return json.dump();
}

RankJob read_job(const std::string& file) {
  const auto job = nlohmann::json::parse(read_file(file));
  const std::string workload = job.at("workload");
  return {.config = job.at("config"),
          .workload = workload,
          .data = {.inputs = job.at("inputs"),
                   .targets = job.at("targets"),
                   .samples = job.at("samples"),
                   .sample = job.contains("text") ? sample_of_files(job) : find_workload(workload).sample},
          .run_dir = job.at("run_dir"),
          .plain_malloc = job.at("plain_malloc"),
          .has_barrier = job.at("has_barrier")};
}

void run_as_rank(const RankJob& job) {
  const auto launched = detect_launch_environment();
  if (!launched) throw ConfigError("the environment does not say which rank this process is");
  if (!job.plain_malloc) keep_freed_memory();
  ExperimentConfig config;
  load_checked(config, {job.config});
  at::set_num_threads(1);
  const RunFolder folder(job.run_dir);
  configure_log({.file = folder.log(launched->rank_info.rank), .stderr_threshold = LogLevel::kNone});
  const auto data = map_samples(job.data);
  const auto world = decorate(connect_backends(config, *launched), config, /*tuned_file=*/"").world;
  Turns turns(std::cin, std::cout);
  run_experiment(config, {.world = world,
                          .splits = {.train = data, .test = data},
                          .folder = folder,
                          .recovery = config.faults.shrinks() ? std::make_shared<Recovery>() : nullptr,
                          .add_hooks = [&](Engine& engine) {
                            if (job.has_barrier) engine.on(Event::kBackward, [&](State&) { world->barrier().wait(); });
                            turns.attach(engine);
                          }});
  throw Error("training has ended before the measurement");
}

}  // namespace phalanx::bench_train
