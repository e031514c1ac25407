// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/chaos/draw.h"

namespace phalanx::chaos {

/// The result of one run with a fault.
struct Row {
  Trial trial;
  std::optional<double> detected_seconds{};  // from the fault until the run said something; empty: it said nothing
  std::optional<double> returned_seconds{};  // from the loss until a newcomer took part; empty: none has
  std::string recovered{};                   // "went on", "shrunk" (went on without a rank), "replaced" (and then with
                                             // a newcomer), "relaunched", "resumed" or "started again"; empty: it did
                                             // not, or was not meant to
  std::int64_t lost_steps = 0;               // complete steps that were computed again
  std::optional<std::int64_t> lost_samples{};  // that no update has seen; empty: unknown, as the weights differ, or
                                               // were not compared bit for bit
  int orphans = 0;                             // processes that were left
  std::vector<std::string> leaked{};           // files that were left
  int status = 0;                              // exit status of the attempt with the fault
  double seconds = 0;                          // of all attempts together
  std::vector<std::string> problems{};         // what should not have been so; empty: all is well

  bool good() const { return problems.empty(); }
};

/// A fault that the config or the machine does not permit.
struct Skipped {
  std::string fault, why;
};

/// Everything that one call of the command has found.
struct Findings {
  std::string config;
  std::uint64_t seed = 1;
  std::int64_t steps = 0;  // of an undisturbed run
  bool bitwise = false;    // two undisturbed runs gave the same weights bit for bit
  std::vector<Row> rows{};
  std::vector<Skipped> skipped{};
};

/// Returns the findings as JSON, with one object {fault, rank, step, ...} for each run.
std::string to_json(const Findings& findings);

/// Returns a line about a run for people: "3/50  kill  rank 1, step 17: detected after 0.03 s, resumed, ... ok".
std::string to_line(const Row& row, int runs);

/// Returns a table of the faults: their runs, failures, and how fast they were detected, for people.
std::string to_table(const Findings& findings);

}  // namespace phalanx::chaos
