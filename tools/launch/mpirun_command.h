#pragma once

#include <string>
#include <vector>

#include "tools/launch/mpi.h"

namespace phalanx {

/// The environment for mpirun, as NAME=value: `inherited`, with what launch_mpi() promises to ranks and to mpirun.
/// rendezvous: the URL where ranks of this host can meet; empty: none is given.
std::vector<std::string> mpirun_environment(const std::vector<std::string>& inherited, const std::string& rendezvous,
                                            bool terminal);

/// mpirun's command line, which hands on every PHALANX_* variable of `environment` to all hosts.
std::vector<std::string> mpirun_command(const std::string& mpirun, const MpiLaunch& options,
                                        const std::vector<std::string>& environment, bool root);

}  // namespace phalanx
