// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// The records of which the database of nightly runs consists. Times are seconds since 1970 (UTC).
namespace phalanx::history {

/// One call of `phalanx regress`: a night.
struct Session {
  std::string suite;
  std::int64_t started_at = 0;
  std::string git_commit{};  // 40 hexadecimal digits; empty outside of a git repository
  bool git_dirty = false;    // true if the tree had changes that were not committed
  std::string shard = "1/1";
};

enum class CaseState { kPlanned, kRunning, kPassed, kFailed, kError, kSkipped, kQuarantined };

/// Returns the text that the database has for a state: "planned", "running", and so on.
std::string to_text(CaseState state);

/// Returns the state of such a text. Throws DataError for any other text.
CaseState parse_case_state(const std::string& text);

/// A config with overrides, which a session runs on a number of ranks.
struct Case {
  std::string name;                      // unique in its session
  std::string config;                    // path of the file
  std::vector<std::string> overrides{};  // "key=value"
  int ranks = 1;
  int hosts = 1;
  CaseState state = CaseState::kPlanned;
  std::string reason{};  // why the case has failed, was skipped, or is in quarantine
};

/// The machines and the software of a run.
struct Environment {
  std::string hardware;  // model of the processor, or of the accelerator
  int cores = 0;         // of each host
  std::vector<std::string> hosts{};
  std::map<std::string, std::string> versions{};  // of phalanx, libtorch, mpi, compiler, kernel
};

/// One start of the program for a case.
struct Run {
  int attempt = 1;            // from 1; a case has several if the infrastructure failed
  std::string role = "main";  // main, reference (same_as), first_half, resumed, one_rank or faults
  std::optional<Environment> environment{};
  std::int64_t started_at = 0;
  std::string folder{};  // of the run, relative to the folder of the database
};

/// A value that a run has reported.
struct MetricValue {
  // train, validation or test; "run" for throughput, peak_memory, bytes_per_step and the like; "case" for results of
  // comparisons between runs of the case, such as scaling_efficiency
  std::string split;
  std::string name;
  double value = 0;         // the database has NULL for NaN
  std::int64_t epoch = -1;  // from 0; -1 for the value of the whole run
};

/// An expectation of a config, and what the run has reached.
struct ExpectationResult {
  std::string key;              // "test.accuracy.min"
  std::string wanted;           // ">= 0.97"
  std::string got;              // "0.953"
  std::optional<double> value;  // `got` as a number, if it is one
  bool met = false;
};

/// A file that a run has left.
struct Artefact {
  std::string name;
  std::string path;  // relative to the folder of the database
};

/// The end of a run.
struct RunResult {
  int exit_status = 0;
  std::string error{};
  double seconds = 0;
  std::vector<MetricValue> metrics{};
  std::vector<ExpectationResult> expectations{};
  std::vector<Artefact> artefacts{};
};

/// The name of a metric whose values can be compared between nights.
struct MetricName {
  std::string split = "run";
  std::string name;

  bool operator==(const MetricName&) const = default;
};

/// Parses "test.accuracy". A word without a point is a metric of the whole run, such as "throughput".
MetricName parse_metric(const std::string& text);

/// Returns the text that parse_metric() reads.
std::string to_text(const MetricName& metric);

}  // namespace phalanx::history
