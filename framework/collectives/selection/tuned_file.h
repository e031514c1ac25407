// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/collectives/selection/selection_table.h"
#include "framework/collectives/selection/topology.h"

namespace phalanx {

/// The measurement of one algorithm of an operation at one size.
struct Measured {
  std::string op{}, algorithm{};
  std::int64_t bytes = 0;
  double p50_us = 0;           // median of the slowest rank, in microseconds
  std::int64_t ranks = 0;      // of the group
  std::string scope = kAny;    // of the group, as in a rule; any: unknown
  std::string device = "cpu";  // of the tensors

  bool operator==(const Measured&) const = default;
};

/// The result of tools:tune and of `framework.tune: auto`: the best rules, the topology that they apply to, and the
/// measurements. As JSON:
///
///     {"format": 2,
///      "topology": {"hosts": [{"ranks", "cores", "cpu"}], "device", "backend", "phalanx", "libtorch", "mpi",
///      "levels"}, "rules": [{"op", "up_to", "ranks", "scope", "device", "backend", "algorithm"}], "measured": [{"op",
///      "algorithm", "bytes", "p50_us", "ranks", "scope", "device"}]}
///
/// Files of format 1 have no levels, scopes and devices, and their measurements no ranks. They are read as files
/// without levels, whose rules hold for any scope and device.
struct TunedFile {
  static constexpr int kFormat = 2;

  Topology topology{};
  SelectionTable table{};
  std::vector<Measured> measured{};
};

/// Returns the text of the file.
std::string to_text(const TunedFile& tuned);

/// Throws DataError if the file cannot be written.
void save_tuned(const std::string& path, const TunedFile& tuned);

/// Throws ConfigError, as load_tuned() does for a file with this text. `path` is for messages.
TunedFile parse_tuned(const std::string& path, const std::string& text);

/// Throws ConfigError with the path if the file cannot be read, is not such JSON, has another format (the message says
/// how to create a new file), or has rules that this program does not support.
TunedFile load_tuned(const std::string& path);

/// Throws ConfigError unless `tuned` was measured in the topology `here`. The message names the differences and says
/// how to create a new file. `path` is the path of the file.
void check_fits(const TunedFile& tuned, const Topology& here, const std::string& path);

}  // namespace phalanx
