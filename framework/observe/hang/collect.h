// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "framework/observe/hang/picture.h"
#include "framework/observe/hang/rank_page.h"

namespace phalanx {

/// Announces the page of a rank to the other ranks, in the file rank<r>.process of the page's folder: on which host and
/// in which process it is. Throws DataError.
void announce(const RankPage& page, const std::string& folder, int rank);

/// Removes that file.
void withdraw(const std::string& folder, int rank) noexcept;

/// Writes what a rank knows of itself to rank<r>.picture, for the ranks of other hosts. Throws DataError.
void write_picture(const std::string& folder, const RankPicture& picture);

/// Removes that file, if there is one.
void remove_picture(const std::string& folder, int rank) noexcept;

/// Collects what can be known of the ranks of the run whose log folder is `folder`. Ranks of this host are read from
/// their pages, even if they are stopped or hang; ranks of other hosts from the files that they have written, if hosts
/// share the folder. Neither waits for any rank. Ranks of which nothing is known are absent.
JobPicture picture_of_job(const std::string& folder, int size);

/// Does the same for the job to which a process of this host belongs: `process` is a rank, or a launcher such as
/// mpirun, torchrun or train that has ranks among its descendants. Throws Error if none of these processes is a rank,
/// or if this user may not read their memory.
JobPicture picture_of_process(pid_t process);

}  // namespace phalanx
