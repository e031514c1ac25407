// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/shared_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "framework/base/error.h"

namespace phalanx {
namespace {

std::string absolute(const std::string& path) { return std::filesystem::absolute(path).lexically_normal().string(); }

}  // namespace

SharedFolder::SharedFolder(std::string path) : path_(absolute(path)) {
  remove();
  if (::mkdir(path_.c_str(), 0700) != 0) throw Error(path_ + ": " + std::generic_category().message(errno));
}

void SharedFolder::remove() const {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string meeting_folder_of(const std::string& log_folder) { return absolute(log_folder + "/meeting"); }

}  // namespace phalanx
