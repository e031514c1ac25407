// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/collectives/selection/table.h"
#include "framework/collectives/selection/topology.h"

namespace phalanx {

/// One way of an operation, at one size.
struct Measured {
  std::string op{}, algorithm{};
  std::int64_t bytes = 0;
  double p50_us = 0;  // of the slowest rank

  bool operator==(const Measured&) const = default;
};

/// What tools:tune leaves: the rules that were best, for whom, and the figures that say so. As JSON:
///
///     {"format": 1,
///      "topology": {"hosts": [{"ranks", "cores", "cpu"}], "device", "backend", "phalanx", "libtorch", "mpi"},
///      "rules": [{"op", "up_to", "ranks", "backend", "algorithm"}],
///      "measured": [{"op", "algorithm", "bytes", "p50_us"}]}
struct TunedFile {
  static constexpr int kFormat = 1;

  Topology topology{};
  SelectionTable table{};
  std::vector<Measured> measured{};
};

/// Throws DataError when the file cannot be written.
void save_tuned(const std::string& path, const TunedFile& tuned);

/// Throws ConfigError with the path for a file that cannot be read, is no such JSON, has another format (and how to
/// make a new one), or has rules that this program cannot follow.
TunedFile load_tuned(const std::string& path);

/// Throws ConfigError that says what differs, and how to make a new file, unless `tuned` was measured in the topology
/// that is `here`. `path`: of the file.
void check_fits(const TunedFile& tuned, const Topology& here, const std::string& path);

}  // namespace phalanx
