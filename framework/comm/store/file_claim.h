// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/base/descriptor.h"
#include "framework/comm/store/store.h"

namespace phalanx {

/// The claim of a process to the file of a file store, held as long as this object lives. The kernel drops it if the
/// process dies, so a file without a claim was left by a dead run, and the first claim empties it.
///
/// Claims are locks, which are reliable only in file systems of this host (ext4, XFS, tmpfs, overlayfs, ...). All
/// processes that use a file there run on this host. In other file systems there is no claim: a file that has not been
/// written to for longer than `timeout` is taken for one that an earlier run left, and is refused.
///
/// The constructor creates the file, readable only by its owner, if it does not exist. It throws CommError::kSystem if
/// the file cannot be used, is a link, or belongs to another user, and CommError::kTimeout if another process holds its
/// lock (flock) for `timeout`.
class FileClaim {
 public:
  FileClaim(const std::string& path, Seconds timeout);

 private:
  Descriptor file_;
};

/// Throws CommError::kSystem with the path and the reason.
[[noreturn]] void refuse_file(const std::string& path, const std::string& why);

}  // namespace phalanx
