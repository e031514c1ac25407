// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launch/failure/failure.h"
#include "launch/local/supervisor.h"

namespace phalanx {

/// The losses of a job below mpirun that goes on without lost ranks (MpiLaunch::goes_on). mpirun neither ends such a
/// job because of a rank nor says how one has ended, so the launcher reads the failures in the log folder of the run,
/// which run_watched() writes. Not thread-safe.
class MpiLosses {
 public:
  /// Forgets the losses of an earlier job in `log_folder`.
  explicit MpiLosses(std::string log_folder);

  /// Makes `supervisor` shut down within a second after a failure that ends the job (see is_loss()). This object must
  /// outlive its run.
  void watch(Supervisor& supervisor);

  /// Removes the failures of ranks without which the others have gone on, and adds those that have ended the job, if
  /// the others have removed them.
  void settle(std::vector<Failure>& failures);

 private:
  bool find_ending();

  std::string log_folder_;
  std::vector<Failure> ending_{};  // failures that have ended the job
};

}  // namespace phalanx
