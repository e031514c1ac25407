// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// A folder in the log folder of a run, which all hosts of the job see and only its user can enter. It exists as long
/// as this object, which replaces one that an earlier launcher has left.
class SharedFolder {
 public:
  /// Throws Error if it cannot be created.
  explicit SharedFolder(std::string path);
  ~SharedFolder() { remove(); }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  const std::string& path() const { return path_; }  // absolute

 private:
  void remove() const;

  std::string path_;
};

/// Returns the path of the meeting folder (MeetingFolder) of a job on several hosts.
std::string meeting_folder_of(const std::string& log_folder);

}  // namespace phalanx
