// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/observe/hang/flight_recorder_value.h"

namespace phalanx {

/// The ranks of the largest job whose dumps are read.
inline constexpr std::int64_t kMaxDumpRanks = 1 << 20;

/// A process group of PyTorch.
struct DumpGroup {
  std::string name, description;
  std::vector<int> ranks;  // ascending; empty: unknown
  bool is_world() const { return description == "default_pg"; }
};

/// The process groups of a job, by the dumps of its ranks. Groups of different ranks may have the same name on
/// different ranks.
class DumpGroups {
 public:
  /// Adds the groups of which one rank is a member. `content` is its dump, of the file `source`. Throws DataError for
  /// a dump of another job.
  void add(int rank, const std::string& source, const DumpValue& content);

  /// Returns the number of ranks of the job that is known so far.
  int size() const { return size_; }

  /// Returns the group that a rank calls by this name. It does not move.
  const DumpGroup& find(int rank, const std::string& name, const std::string& description);

  /// Returns the name that the whole job has for a group of find(): "world", "mesh_tp group 3" or "group 3". All groups
  /// must have been added.
  const std::string& label(const DumpGroup& group);

 private:
  std::string make_label(const DumpGroup& group) const;
  void check_world(const std::string& source, const DumpGroup& group);

  int size_ = 0;
  DumpGroup world_{};
  std::string world_from_{};
  std::map<int, std::map<std::string, DumpGroup>> by_rank_{};
  std::map<std::string, std::vector<std::vector<int>>> ranks_{};  // by name, what different ranks say
  std::map<const DumpGroup*, std::string> labels_{};              // of groups in by_rank_
};

/// Returns "rank 3", or "ranks 0, 1, 2" with the number of those that are too many to be named.
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace phalanx
