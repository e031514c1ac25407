// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/json.h"
#include "tools/bench_train/hosts.h"
#include "tools/chaos/attempt.h"
#include "tools/chaos/draw.h"

namespace phalanx::chaos {

/// The command line and the ranks of the runs.
struct Launching {
  std::vector<std::string> train{};      // the program train, as words
  std::vector<std::string> arguments{};  // its arguments, without the run folder
  int ranks = 1;
  double timeout = 10;                        // framework.timeout, seconds
  const bench_train::Hosts* hosts = nullptr;  // the two hosts on which ranks run; null: train starts them here
  bool threads = false;                       // ranks are threads of one process
  bool shrinks = false;                       // ranks that are left go on without lost ones
  bool replaces = false;                      // new processes take the places of lost ranks
  bool same_on_fewer_ranks = false;           // the bits are the same on fewer ranks (world_size_invariant)
};

/// The folders of one run.
struct Folders {
  explicit Folders(const std::string& base) : base(base) {}
  std::string base;

  std::string run() const { return base + "/run"; }
  std::string temporary() const { return base + "/tmp"; }
  std::string note() const { return base + "/note"; }

  /// Creates them, and the folder of the output of an attempt. Throws Error.
  void create() const;
  std::string attempt(int number) const;
};

/// The undisturbed run with which others are compared.
struct Reference {
  std::string weights{};  // the file's bytes
  double loss = 0;        // of the last test
  double spread = 0;      // by which the losses of two undisturbed runs differ
  bool bitwise = true;    // their weights were equal
  std::int64_t steps = 0;
  double seconds = 0;
  std::uintmax_t bytes = 0;  // of the run folder
};

/// Returns the processes that carry out a run in these folders, as `launching` says. `more`: further arguments and
/// variables of each.
std::vector<Start> starts_of(const Launching& launching, const Folders& folders, const Start& more);

/// Runs the subject twice without a fault, below `folder`, and compares the two. Throws Error with what the run printed
/// if it fails.
Reference measure_reference(const Launching& launching, const std::string& folder);

/// Returns the summary.json of a run. Throws DataError if it is missing.
JsonValue summary_of(const std::string& run_folder);

/// Returns what distinguishes the result of a run from the reference; empty: nothing. Weights are compared bit for bit
/// if `bitwise`, otherwise losses. Throws DataError if a file is missing.
std::string difference(const std::string& run_folder, const Reference& reference, bool bitwise);

}  // namespace phalanx::chaos
