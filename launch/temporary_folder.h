// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

namespace phalanx {

/// A folder that only this user can enter, under TMPDIR or /tmp. Removed with its contents when this object is
/// destroyed. Throws ConfigError naming the place where it could not be created.
class TemporaryFolder {
 public:
  enum class Removal {
    kAtItsEnd,
    kAlways,  // even if this process is killed: forks a process named phalanx-tidy that waits for its end.
              // Must be created by the thread that lives longest.
  };

  explicit TemporaryFolder(Removal removal = Removal::kAtItsEnd);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  void make();

  std::string path_;
  pid_t cleaner_ = 0;
};

}  // namespace phalanx
