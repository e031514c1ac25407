#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/experiment/config.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/collectives/selection/tuned_file.h"

namespace phalanx {
namespace {

// Problems that concern the relation of several keys have no one line.
void refuse_if(std::vector<ConfigProblem>& problems, bool wrong, const char* key, const std::string& message) {
  if (wrong) problems.push_back({.origin = "config", .key = key, .message = message, .suggestion = {}});
}

// Components know best which of their fields go together.
template <class Choice, class... Args>
void refuse_if_not_made(std::vector<ConfigProblem>& problems, const char* key, const Choice& choice,
                        const Args&... args) {
  try {
    choice.make(args...);
  } catch (const ConfigError& error) {
    refuse_if(problems, true, key, error.what());
  }
}

// Whether it fits the ranks, they find out when they are connected.
void refuse_unreadable(std::vector<ConfigProblem>& problems, const std::string& selection_file) {
  if (selection_file.empty()) return;
  try {
    (void)load_tuned(selection_file);
  } catch (const ConfigError& error) {
    refuse_if(problems, true, "framework.selection_file", error.what());
  }
}

}  // namespace

void check(const ExperimentConfig& config) {
  std::vector<ConfigProblem> problems;
  refuse_if(problems, config.model.selected().empty(), "model", "is missing: name a model (--help_config lists them)");
  refuse_if(problems, config.name.empty() || config.name.find('/') != std::string::npos, "name",
            "\"" + config.name + "\" cannot be part of a folder's name");
  refuse_if(problems, config.train.global_batch_size < config.launch.ranks, "train.global_batch_size",
            std::to_string(config.train.global_batch_size) +
                " samples cannot be shared by launch.ranks: " + std::to_string(config.launch.ranks));
  refuse_if(problems, config.strategy.selected() == "single" && config.launch.ranks > 1, "strategy",
            "single trains on one rank, but launch.ranks is " + std::to_string(config.launch.ranks));
  refuse_if(problems, config.launch.with == "local" && !config.launch.hosts.empty(), "launch.with",
            "local starts ranks on this host only, but launch.hosts names others; use mpi");
  refuse_if(problems, config.backend == "inproc" && config.launch.with == "mpi", "launch.with",
            "mpi starts processes, but the ranks of backend inproc are threads");
  refuse_if(problems, config.backend == "inproc" && !config.launch.hosts.empty(), "backend",
            "the ranks of inproc are threads of one process, but launch.hosts names hosts");
  refuse_if(problems, config.train.ema_decay == 1, "train.ema_decay",
            "must be below 1: averages that keep all learn nothing");
  refuse_if_not_made(problems, "loss", config.loss);
  refuse_if_not_made(problems, "optimizer", config.optimizer, config.parameter_groups);
  refuse_if_not_made(problems, "schedule", config.schedule);
  const auto measures = [&](const MeterConfig& meter) { return meter.meter.selected() == "accuracy"; };
  refuse_if(problems, config.expect.test_accuracy > 0 && std::ranges::none_of(config.evaluate.meters, measures),
            "expect.test_accuracy", "needs {meter: accuracy} among evaluate.meters");
  for (auto& problem : problems_of(config.framework.selection, "config", "framework.selection")) {
    problems.push_back(std::move(problem));
  }
  refuse_unreadable(problems, config.framework.selection_file);
  try {
    refuse_if(problems, parse_bytes(config.framework.bucket_bytes) <= 0, "framework.bucket_bytes", "must be above 0");
  } catch (const ConfigError& error) {
    refuse_if(problems, true, "framework.bucket_bytes", error.what());
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

}  // namespace phalanx
