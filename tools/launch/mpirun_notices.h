#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/launch/verdict.h"

namespace phalanx {

/// Separates what mpirun itself says on standard error from what the ranks say there: Open MPI puts its own notices
/// between two lines of 74 dashes.
class MpirunNotices {
 public:
  /// Takes the next piece of mpirun's standard error; returns the complete lines in it that are the ranks'.
  std::string feed(std::string_view piece);

  /// The rest of the ranks' last line, if it has no end.
  std::string finish();

  /// The notices so far, without dashes.
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  std::string pending_;  // the begin of a line
  bool inside_ = false;
  std::vector<std::string> notices_;
};

/// The ends of ranks that notices tell of: "process rank 1 with PID 4711 on node n7 exited on signal 9 (Killed)" and
/// "Process name: [prterun-n7-4711@1,1] Exit code: 7", also of Open MPI 4. Their time is 0: mpirun names the first one.
std::vector<RankEnd> ends_in(const std::vector<std::string>& notices);

}  // namespace phalanx
