// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace phalanx {

/// Notes in `folder`, the log folder of the run, that the run has ended as it should, with this ExitStatus, which is no
/// failure (is_failure()). Below an mpirun that ends no rank because of another one, this is how the launcher tells
/// such an end from one in which all ranks were killed: mpirun's status is 0 in both cases. Must be called only by the
/// first of the ranks that are left, once everything is saved: the others may leave before that. If the folder cannot
/// be written, uses the folder that kSpareFailureFolder names. Never throws: if both folders fail, prints a line to
/// stderr, and the launcher takes the job for failed.
void note_end_of_run(const std::string& folder, int status) noexcept;

/// Returns the status that was noted in `folder` or, unless it is empty, in the folder `spare`, and removes the
/// notes. Returns nothing if there is no note, or if it has no such status.
std::optional<int> take_end_of_run(const std::string& folder, const std::string& spare = "");

}  // namespace phalanx
