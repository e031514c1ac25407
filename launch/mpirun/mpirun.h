// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/failure/verdict.h"
#include "launch/mpirun/launch_mpi.h"

// The program mpirun: its location, its command line, and its output.
namespace phalanx {

/// Returns the mpirun that launch_mpi() uses: the one in MPI_HOME if that is set, else the one on PATH, else the one of
/// the MPI with which this program was built. Throws a ConfigError that lists where it looked and what to do.
std::string find_mpirun();

/// Does the same with a different folder in the last step.
std::string find_mpirun(const std::string& built_with);

/// The MPI to which an mpirun belongs. MPICH's and Intel MPI's is Hydra.
enum class MpirunKind { kOpenMpi, kMpich, kIntelMpi };

struct Mpirun {
  std::string path{};  // of the program to start; for Hydra it may be another than mpirun
  MpirunKind kind = MpirunKind::kOpenMpi;

  bool is_hydra() const { return kind != MpirunKind::kOpenMpi; }
};

/// Tells by the files next to the program `path` which MPI it belongs to: Hydra has hydra_pmi_proxy, Intel MPI also has
/// hydra_bstrap_proxy. Intel MPI's mpirun is a script around mpiexec.hydra, which is used instead.
Mpirun identify_mpirun(const std::string& path);

/// Returns why ranks that this mpirun starts cannot go on without one that has ended, with what to use instead, or an
/// empty string if they may. Runs `mpirun --version`: Open MPI has ULFM from version 5 on, unless it was built without;
/// then Communicator::why_no_shrink() says so.
std::string why_no_ulfm(const Mpirun& mpirun);

/// Returns the first of these options of Open MPI's mpirun (MpiLaunch::mpirun_options) that keeps ranks from going on
/// without one that has ended, with its value: `--with-ft none`, or `mpi_ft_enable 0` of `--mca mpi_ft_enable 0`.
/// Returns an empty string if there is none.
std::string words_against_ulfm(const std::vector<std::string>& options);

/// Returns the environment for mpirun, as NAME=value: `inherited`, changed as launch_mpi() documents. `rendezvous` is
/// the URL of a rendezvous for ranks of this host, or empty.
std::vector<std::string> mpirun_environment(const Mpirun& mpirun, const std::vector<std::string>& inherited,
                                            const std::string& rendezvous, bool terminal);

/// Returns true if this is the name or an address of this host. May wait for name servers.
bool is_this_host(const std::string& name);

/// Returns true if a pattern, which is a name or a beginning and *, matches the name of a variable.
bool is_matched(std::string_view name, std::string_view pattern);

/// Throws ConfigError if mpirun could not start ranks on one of the hosts ("name" or "name:slots"): a host other than
/// this one, without ssh or rsh on PATH, without another agent in the environment variables of Open MPI or Hydra, and
/// without a batch system that starts ranks. Also throws for malformed host names. May wait for name servers.
void require_remote_shell(const std::vector<std::string>& hosts);

/// Throws ConfigError if ssh could not start an agent on one of the hosts ("name" or "name:slots"): a host other than
/// this one, without ssh on PATH. Also throws for malformed host names. May wait for name servers.
void require_ssh(const std::vector<std::string>& hosts);

/// Returns the path of a program on PATH, or an empty string if it is not there.
std::string find_program(const std::string& name);

/// Throws a ConfigError that names the first of these variables (MpiLaunch::pass_variables) that is not set in this
/// process. A beginning of names, such as NCCL_*, need not have any variable.
void require_variables(const std::vector<std::string>& names);

/// Returns mpirun's command line, which passes every PHALANX_* variable of `environment`, and those of
/// `options.pass_variables`, on to all hosts. Hydra passes all variables on anyway; it reads the hosts from
/// `host_file`, with one of them on each line.
std::vector<std::string> mpirun_command(const Mpirun& mpirun, const MpiLaunch& options,
                                        const std::vector<std::string>& environment, bool root,
                                        const std::string& host_file = "");

/// Separates the messages of Open MPI's mpirun on standard error from the output of the ranks: Open MPI prints its
/// notices between two lines of 74 dashes. Lines that Open MPI's library writes in a rank when a peer has ended
/// ("NBC_Progress: an error 75 was found during schedule ...") are dropped, with the empty line after each.
class MpirunNotices {
 public:
  /// Takes the next piece of mpirun's standard error and returns the complete lines in it that came from ranks.
  std::string feed(std::string_view piece);

  /// Returns the rest of the ranks' last line, if it is incomplete.
  std::string finish();

  /// Returns the notices so far, without the lines of dashes.
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  std::string pending_;  // the beginning of a line
  bool inside_ = false;
  bool after_library_ = false;  // the last line was the library's
  std::vector<std::string> notices_;
};

/// Returns the ends of ranks that the notices report: "process rank 1 with PID 4711 on node n7 exited on signal 9
/// (Killed)" and "Process name: [prterun-n7-4711@1,1] Exit code: 7", also in the format of Open MPI 4. Their time is 0,
/// because mpirun reports only the first one.
std::vector<RankEnd> rank_ends_in(const std::vector<std::string>& notices);

}  // namespace phalanx
