// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/failure/verdict.h"

namespace phalanx {

/// Separates the messages of Hydra, the mpiexec of MPICH and Intel MPI, from the output of the ranks: blocks between
/// two lines of '=' with the lines that belong to them, lines of mpiexec and its proxies, and that of MPI_Abort. For
/// one of the two outputs of mpiexec; Hydra uses both.
class HydraNotices {
 public:
  /// Takes the next piece of output and returns what came from ranks. A line that may still become a message is held
  /// back until its end.
  std::string feed(std::string_view piece);

  /// Returns the rest of the ranks' last line that was held back.
  std::string finish();

  /// Returns the messages so far, without the lines of '=' and without lines that say nothing about the job.
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  bool is_notice(std::string_view line);

  std::string pending_;   // the beginning of a line
  bool passing_ = false;  // the beginning of the line has been returned
  bool inside_ = false;   // of a block
  std::vector<std::string> notices_;
};

/// Returns the ends of ranks that the notices report: "Abort(7) on node 1 (rank 1 in comm 0): ..." and, from Intel MPI,
/// "RANK 1 PID 4711 RUNNING AT n7 ... KILLED BY SIGNAL: 11 (Segmentation fault)". Their time is 0. The rank
/// is -1 if it is unknown which one was killed: after MPICH's "EXIT STRING: Killed (signal 9)", or because several
/// ranks were killed by SIGKILL, with which mpiexec ends the others.
std::vector<RankEnd> rank_ends_in_hydra(const std::vector<std::string>& notices);

}  // namespace phalanx
