// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "framework/base/descriptor.h"

namespace phalanx::fuzz {

/// A file in memory for parsers that open a path. Nothing is left behind.
class ScratchFile {
 public:
  explicit ScratchFile(std::string_view content) : file_(::memfd_create("phalanx-fuzz", MFD_CLOEXEC)) {
    while (file_.valid() && !content.empty()) {
      const ssize_t count = ::write(file_.get(), content.data(), content.size());
      if (count <= 0) break;
      content.remove_prefix(static_cast<std::size_t>(count));
    }
    if (!file_.valid() || !content.empty()) throw std::runtime_error(std::string("memfd: ") + std::strerror(errno));
  }

  std::string path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

 private:
  Descriptor file_;
};

}  // namespace phalanx::fuzz
