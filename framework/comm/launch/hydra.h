// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace phalanx {

/// The process of Hydra, the process manager of MPICH and of Intel MPI, that started this rank on its host. All ranks
/// that mpiexec started on one host have the same.
struct HydraProxy {
  std::string program{};  // path of hydra_pmi_proxy, which is next to mpiexec; empty: unknown
  std::string id{};       // process id and start time: no other process of this host ever has the same

  /// Returns the folder in which this MPI is installed, or an empty string if it is unknown.
  std::string prefix() const;
};

/// Returns the nearest ancestor of this process that is called hydra_pmi_proxy; there may be scripts in between.
std::optional<HydraProxy> find_hydra_proxy();

}  // namespace phalanx
