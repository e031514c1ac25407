#pragma once

#include <sys/types.h>

#include <string>

namespace phalanx {

/// A folder that only this user can enter, under TMPDIR or /tmp; removed with all it holds when this object ends.
/// Throws Error naming the place where it could not be made.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

  /// Has the folder removed also when this process is killed: forks a process, named phalanx-tidy, that waits for the
  /// end of this one. Call from the thread that lives longest.
  void remove_if_killed();

 private:
  std::string path_;
  pid_t caretaker_ = 0;
};

}  // namespace phalanx
