#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/mpi.h"
#include "launch/verdict.h"

// mpirun as a program: where it is, how it is called, and what it says.
namespace phalanx {

/// The mpirun that launch_mpi() uses: where MPI_HOME is set, of that folder; else on PATH, else in the MPI this program
/// was built with. Throws ConfigError that lists where it was looked for and what to do.
std::string find_mpirun();

/// The same with another folder for the last place.
std::string find_mpirun(const std::string& built_with);

/// The environment for mpirun, as NAME=value: `inherited`, with what launch_mpi() promises to ranks and to mpirun.
/// rendezvous: the URL where ranks of this host can meet; empty: none is given.
std::vector<std::string> mpirun_environment(const std::vector<std::string>& inherited, const std::string& rendezvous,
                                            bool terminal);

/// mpirun's command line, which hands on every PHALANX_* variable of `environment` to all hosts.
std::vector<std::string> mpirun_command(const std::string& mpirun, const MpiLaunch& options,
                                        const std::vector<std::string>& environment, bool root);

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
