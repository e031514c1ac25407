// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/regress/suite/suite.h"

namespace phalanx::regress {

/// Expects the losses of another config (expect.same_as).
struct SameAs {
  std::string config{};                  // path
  std::vector<std::string> overrides{};  // of that config: the case's, except for where it runs
  double tolerance = 0;                  // relative
  std::int64_t steps = 0;                // number of steps that are compared; 0: all
  int ranks = 1;                         // of that config
};

/// Expects that a run survives faults (expect.faults).
struct SurvivedFaults {
  std::int64_t injected = 0;  // runs with a fault each
  std::int64_t survived = 0;  // least number of these that survive
  std::int64_t seed = 1;      // from which the faults follow
};

/// The expectations of a config that take other runs than the one that they are about.
struct Relations {
  std::optional<SameAs> same_as{};
  std::optional<double> resume_at{};  // share of the steps after which a run is killed, to be resumed
  std::optional<double> scaling{};    // least efficiency relative to one rank
  std::optional<double> of_median{};  // least share of the median throughput of earlier nights
  std::int64_t nights = 7;            // nights of this median
  std::optional<SurvivedFaults> faults{};
};

/// A case of a suite: a config with overrides, and how it is run, or a command.
struct PlannedCase {
  std::string name{};
  std::string config{};                  // path; empty: the case is a command
  std::string command{};                 // for a shell
  std::string folder{};                  // in which the command runs
  std::vector<std::string> overrides{};  // "key=value"
  int ranks = 1;
  int hosts = 1;
  bool survives_lost_host = false;  // on several hosts; see Job
  double time_limit = 0;            // seconds, of each run
  int retries = 0;
  bool alone = false;
  bool skip_if_refused = false;  // a run that train refuses (status 2) is skipped instead of failing the case
  std::string refused{};         // why the config is refused, which is known before it runs; empty: it is not
  Relations relations{};
};

/// Returns the cases of a suite, in the order of its entries. `overrides` are added to each of them. Every config is
/// loaded and checked. Throws ConfigError for a key that none of the configs of its entry has, for two cases of the
/// same name, for an entry of which every combination is refused, and, unless the entry skips them, for each
/// combination that is refused.
std::vector<PlannedCase> plan_cases(const Suite& suite, const std::vector<std::string>& overrides);

/// Returns the assignments that also apply to a config with the same results: those that are not about where and how
/// ranks run (launch, backend, strategy, mesh and the like), expectations or files.
std::vector<std::string> without_placement(const std::vector<std::string>& overrides);

}  // namespace phalanx::regress
