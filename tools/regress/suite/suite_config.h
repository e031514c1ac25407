// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/config/visitor.h"

// The schema of suite files and of quarantine.yaml next to them.
namespace phalanx::regress {

/// The values of one key of a matrix, each as YAML. Written as `key: [1, 2]`.
struct AxisConfig {
  std::vector<std::string> values;

  template <class V>
  void visit(V& v) {
    v("values", values, "values that the key takes, in turn");
  }
};

/// Axes by key: ranks, hosts, backends, strategies, meshes, seeds, or any key of a config.
using Axes = std::map<std::string, AxisConfig>;

/// The value of one key of a config, as YAML. Written as `key: value`.
struct SettingConfig {
  std::string value;

  template <class V>
  void visit(V& v) {
    v("value", value, "value of the key");
  }
};

/// Combinations that a matrix leaves out: each key has one of the values given for it.
struct ExclusionConfig {
  Axes when;

  template <class V>
  void visit(V& v) {
    v("when", when, "values of the combinations to leave out, by key of the matrix");
  }
};

/// A case that is a shell command instead of a run of train. It has passed if it ends with status 0.
struct CommandConfig {
  std::string name;
  std::string run;

  template <class V>
  void visit(V& v) {
    v("name", name, "name of the case");
    v("run", run, "shell command, which runs in `root`");
  }
};

/// An entry of a suite: configs, each of which runs with every combination of the values of its matrix, or commands.
struct EntryConfig {
  std::vector<std::string> configs;
  std::vector<CommandConfig> commands;
  std::string label;
  std::map<std::string, SettingConfig> set;
  Axes matrix;
  std::vector<ExclusionConfig> exclude;
  std::string refused = "error";
  bool alone = false;
  std::optional<double> time_limit;

  template <class V>
  void visit(V& v) {
    v("configs", configs, "names of config files, below `root`; *, ? and [...] match several");
    v("commands", commands, "shell commands instead of configs, as a list of {name: NAME, run: COMMAND}");
    v("label", label, "word added to the names of these cases, to tell them from cases of another entry");
    v("set", set, "keys of the configs to override, with their values");
    v("matrix", matrix,
      "ranks, hosts, backends, strategies, meshes, seeds or any key of a config, each with a list of values; every "
      "combination is a case");
    v("exclude", exclude, "combinations to leave out, such as {strategies: [single], ranks: [2, 4]}");
    v("refused", refused, "what to do with combinations that train refuses; error: they fail, skip: they are skipped",
      config::one_of({"error", "skip"}));
    v("alone", alone, "run each of these cases while no other case runs, so that its speed can be compared");
    v("time_limit", time_limit, "seconds that each run of these cases may take; absent: the suite's", config::above(0));
  }
};

/// A suite: the YAML file that `regress --suite` names.
struct SuiteConfig {
  std::string root = "..";
  double time_limit = 600;
  std::int64_t retries = 1;
  std::vector<EntryConfig> cases;

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of the configs, in which commands run, relative to the folder of the suite's file");
    v("time_limit", time_limit, "seconds that a run may take", config::above(0));
    v("retries", retries, "how often a run is repeated whose infrastructure failed; results are never repeated",
      config::between(0, 10));
    v("cases", cases, "the entries of the suite");
  }
};

/// Cases that are known to fail now and then.
struct FlakyConfig {
  std::string cases;
  std::string until;
  std::string reason;

  template <class V>
  void visit(V& v) {
    v("cases", cases, "name of a case; *, ? and [...] match several");
    v("until", until, "last day on which a failure of these cases is accepted, such as 2027-01-31");
    v("reason", reason, "why they fail, and where that is being worked on");
  }
};

/// The file quarantine.yaml.
struct QuarantineConfig {
  std::vector<FlakyConfig> quarantine;

  template <class V>
  void visit(V& v) {
    v("quarantine", quarantine, "cases whose failures do not fail a session");
  }
};

}  // namespace phalanx::regress
