// SPDX-License-Identifier: Apache-2.0
#include "engine/config/check.h"

#include <algorithm>
#include <cstdint>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/config_problems.h"
#include "engine/config/section_checks.h"
#include "framework/base/config/config.h"
#include "framework/base/config/node.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/collectives/selection/tuned_file.h"
#include "framework/comm/backend.h"

namespace phalanx {
namespace {

// Each traced step may keep some hundred operators in memory until the window ends.
constexpr std::int64_t kMaxTracedSteps = 1000;

// Adds a problem if the component cannot be made. Each component checks the combination of its fields.
template <class Choice, class... Args>
void refuse_if_not_made(std::vector<ConfigProblem>& problems, const char* key, const Choice& choice,
                        const Args&... args) {
  try {
    choice.make(args...);
  } catch (const ConfigError& error) {
    refuse_if(problems, true, key, error.what());
  }
}

// Adds a problem if the file cannot be read. The ranks check later, when they are connected, that it fits them.
void refuse_unreadable(std::vector<ConfigProblem>& problems, const std::string& selection_file) {
  if (selection_file.empty()) return;
  try {
    (void)load_tuned(selection_file);
  } catch (const ConfigError& error) {
    refuse_if(problems, true, "framework.selection_file", error.what());
  }
}

// Checks that the device exists. This loads the libraries of devices before ranks are forked, so that the ranks share
// them.
void check_device(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  if (config.device == "cpu") return;
  if (config.device == "auto") {
    for (const auto& kind : DeviceKinds::global().names()) (void)DeviceKinds::Choice(kind).make()->missing();
    return;
  }
  const std::string missing = DeviceKinds::Choice(config.device).make()->missing();
  refuse_if(problems, !missing.empty(), "device", config.device + ": " + missing);
  refuse_if(problems, config.train.data_parallel > 1, "train.data_parallel",
            "must be 1 on a device, which the threads of a rank would have to share; start a rank for each device");
}

constexpr std::size_t kLongestName = 100;  // with the time appended, well below the limit of 255 bytes for a file name

// Checks a name that becomes part of the run folder's name: it must be valid in every file system and shell.
void check_name(std::vector<ConfigProblem>& problems, const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  const bool good = !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, allowed);
  const config::Node written{.kind = config::Node::Kind::kScalar, .text = name};
  refuse_if(problems, !good, "name",
            config::what_is(written) + " cannot be part of a folder's name; use 1 to " + std::to_string(kLongestName) +
                " letters, digits, '.', '_' and '-'");
}

void check_profile(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& profile = config.watch.profile;
  refuse_if(problems, profile.to < profile.from || (profile.from == 0 && profile.to > 0), "watch.profile",
            "a window from step " + std::to_string(profile.from) + " to " + std::to_string(profile.to) +
                " is empty; steps are numbered from 1");
  refuse_if(problems, profile.operators && profile.to - profile.from >= kMaxTracedSteps, "watch.profile",
            "a window of " + std::to_string(profile.to - profile.from + 1) +
                " steps with all operators would fill the memory; use " + std::to_string(kMaxTracedSteps) +
                " at most, or set operators: false");
}

// Returns true if all `match` fields are valid regular expressions.
bool check_groups(std::vector<ConfigProblem>& problems, const ParameterGroups& groups) {
  const auto before = problems.size();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    try {
      (void)std::regex(groups[i].match, std::regex::ECMAScript);
    } catch (const std::regex_error& error) {
      refuse_if(problems, true, ("parameter_groups[" + std::to_string(i) + "].match").c_str(),
                "\"" + groups[i].match + "\" is not a regular expression: " + error.what());
    }
  }
  return problems.size() == before;
}

void check_components(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  refuse_if_not_made(problems, "loss", config.loss);
  refuse_if(problems, config.evaluate.validation == 1, "evaluate.validation",
            "must be below 1, so that samples are left to train on");
  const ParameterGroups groups =
      check_groups(problems, config.parameter_groups) ? config.parameter_groups : ParameterGroups();
  refuse_if_not_made(problems, "optimizer", config.optimizer, groups);
  for (const auto& [name, turn] : config.turns) {
    refuse_if_not_made(problems, ("turns." + name + ".optimizer").c_str(), turn.optimizer, groups);
  }
  refuse_if_not_made(problems, "schedule", config.schedule);
}

void check_framework(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  for (auto& problem : problems_of(config.framework.selection, "config", "framework.selection")) {
    problems.push_back(std::move(problem));
  }
  refuse_unreadable(problems, config.framework.selection_file);
  check_topology(problems, config.framework.topology);
  const bool tunes = config.framework.tune == "auto";
  refuse_if(problems, tunes && config.determinism == "world_size_invariant", "framework.tune",
            "auto chooses by measurement in which order ranks add, so a different number of ranks may round "
            "differently; use off");
  refuse_if(problems, tunes && !config.framework.selection_file.empty(), "framework.tune",
            "auto measures what framework.selection_file has already; use one of the two");
  const auto& bucket_bytes = config.framework.bucket_bytes;
  if (bucket_bytes == "auto") {
    refuse_if(problems, config.determinism == "world_size_invariant", "framework.bucket_bytes",
              "auto depends on measurements, so a different number of ranks may round differently; set a size");
    return;
  }
  if (bucket_bytes == "default") return;
  try {
    refuse_if(problems, parse_bytes(bucket_bytes) <= 0, "framework.bucket_bytes", "must be above 0");
  } catch (const ConfigError& error) {
    refuse_if(problems, true, "framework.bucket_bytes", error.what());
    problems.back().suggestion = nearest(bucket_bytes, {"default", "auto"});
  }
}

}  // namespace

void check(const ExperimentConfig& config) {
  std::vector<ConfigProblem> problems;
  refuse_if(problems, config.model.selected().empty(), "model", "is missing: name a model (--help_config lists them)");
  check_name(problems, config.name);
  check_device(problems, config);
  check_ranks(problems, config);
  check_mesh(problems, config);
  check_faults(problems, config);
  check_shared_memory(problems, config);
  check_strategy(problems, config);
  check_training(problems, config);
  check_shards(problems, config);
  check_cuda_graph(problems, config);
  check_loader(problems, config);
  check_determinism(problems, config);
  check_profile(problems, config);
  check_components(problems, config);
  check_expectations(problems, config);
  check_framework(problems, config);
  check_recording(problems, config);
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

}  // namespace phalanx
