// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/mpi.h"
#include "launch/verdict.h"

// The program mpirun: where it is, how it is called, and what it prints.
namespace phalanx {

/// The mpirun that launch_mpi() uses: the one in MPI_HOME if that is set, else the one on PATH, else that of the MPI
/// this program was built with. Throws a ConfigError that lists where it looked and what to do.
std::string find_mpirun();

/// The same with a different folder for the last place.
std::string find_mpirun(const std::string& built_with);

/// The environment for mpirun, as NAME=value: `inherited`, changed as launch_mpi() documents. `rendezvous`: the URL of
/// a rendezvous for ranks of this host; empty: none.
std::vector<std::string> mpirun_environment(const std::vector<std::string>& inherited, const std::string& rendezvous,
                                            bool terminal);

/// Throws ConfigError where mpirun would have no way to start ranks on one of the hosts ("name" or "name:slots"): one
/// that is not this host, without ssh or rsh on PATH, another agent in Open MPI's environment variables, or a batch
/// system that starts them; and for what is no host. May wait for name servers then.
void require_way_to(const std::vector<std::string>& hosts);

/// mpirun's command line, which passes every PHALANX_* variable of `environment` on to all hosts.
std::vector<std::string> mpirun_command(const std::string& mpirun, const MpiLaunch& options,
                                        const std::vector<std::string>& environment, bool root);

/// Separates mpirun's own output on standard error from that of the ranks: Open MPI puts its notices between two lines
/// of 74 dashes.
class MpirunNotices {
 public:
  /// Takes the next piece of mpirun's standard error, and returns the complete lines in it that came from ranks.
  std::string feed(std::string_view piece);

  /// The rest of the ranks' last line, if it is incomplete.
  std::string finish();

  /// The notices so far, without dashes.
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  std::string pending_;  // the beginning of a line
  bool inside_ = false;
  std::vector<std::string> notices_;
};

/// The ends of ranks that the notices report: "process rank 1 with PID 4711 on node n7 exited on signal 9 (Killed)" and
/// "Process name: [prterun-n7-4711@1,1] Exit code: 7", also in the form of Open MPI 4. Their time is 0, because mpirun
/// reports the first one.
std::vector<RankEnd> ends_in(const std::vector<std::string>& notices);

}  // namespace phalanx
