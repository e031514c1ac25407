// SPDX-License-Identifier: Apache-2.0
#include "framework/base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>  // rename
#include <filesystem>
#include <system_error>

#include "framework/base/error.h"
#include "framework/base/new_file.h"

namespace phalanx {
namespace {

constexpr int kMaxLeft = 1000;  // leftover files of one name, from killed processes with the same id, before giving up

// The file is in the same folder, because rename() is atomic only within one file system. Its name contains the process
// id and a count, so that two writers of one file do not mix their data. A file or link that is already there stays as
// it is.
Descriptor create_temporary(const std::string& path, std::string& name) {
  static std::atomic<int> calls{0};
  for (int attempt = 0;; ++attempt) {
    name = path + "." + std::to_string(::getpid()) + "." + std::to_string(calls++) + ".tmp";
    Descriptor file = create_new_file(name);
    if (file.valid() || errno != EEXIST || attempt == kMaxLeft) return file;
  }
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), file_(create_temporary(path, temporary_)) {
  if (!file_.valid()) fail();
}

AtomicFile::~AtomicFile() {
  if (!replaced_) ::unlink(temporary_.c_str());
}

void AtomicFile::fail() const { throw DataError(path_ + ": " + std::generic_category().message(errno)); }

void AtomicFile::write(std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

void AtomicFile::replace() {
  if (::fsync(file_.get()) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  replaced_ = true;
  // The new name is in the folder, which must reach the disk too. Some file systems cannot sync a folder; the file
  // itself is safe there, so this is not an error.
  const auto folder = std::filesystem::path(path_).parent_path();
  const Descriptor opened(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.valid()) ::fsync(opened.get());
}

}  // namespace phalanx
