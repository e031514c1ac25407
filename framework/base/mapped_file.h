// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"

namespace phalanx {

/// A file that is mapped into memory, read-only. Its pages are read when they are first used, and all processes of the
/// host share them. The file must not become shorter while it is mapped. Thread-safe.
class MappedFile {
 public:
  /// Throws a DataError that names the file if it cannot be opened or mapped.
  explicit MappedFile(const std::string& path)
      : MappedFile(path, Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC))) {}

  /// Maps `file`, which was opened at `path` and need not stay open. Throws as above.
  MappedFile(const std::string& path, const Descriptor& file) {
    struct stat status{};
    const auto require = [&](bool succeeded) {
      if (!succeeded) throw DataError(path + ": " + std::generic_category().message(errno));
    };
    require(file.valid() && ::fstat(file.get(), &status) == 0);
    if (S_ISDIR(status.st_mode)) throw DataError(path + ": is a folder");
    size_ = static_cast<std::size_t>(status.st_size);
    if (size_ == 0) return;
    void* const data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
    require(data != MAP_FAILED);
    data_ = data;
  }
  ~MappedFile() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = nullptr;  // null for an empty file
  std::size_t size_ = 0;
};

}  // namespace phalanx
