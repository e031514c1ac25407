// SPDX-License-Identifier: Apache-2.0
#include "engine/watch/appended_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/file_identity.h"
#include "framework/base/write_all.h"

namespace phalanx {
namespace {

constexpr std::size_t kMaxKept = std::size_t{16} << 20;

}  // namespace

AppendedFile::AppendedFile(std::string path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
  if (!file_.valid()) throw DataError(path_ + ": cannot be opened: " + std::generic_category().message(errno));
}

void AppendedFile::add(std::string_view record) {
  if (unwritten_.size() + record.size() <= kMaxKept) unwritten_ += record;
  struct stat before = {};
  const bool known = ::fstat(file_.get(), &before) == 0;
  const int problem = known ? write_all(file_.get(), unwritten_) : errno;
  if (problem != 0) {
    if (known) (void)!::ftruncate(file_.get(), before.st_size);
    throw DataError(path_ + ": cannot be written: " + std::generic_category().message(problem));
  }
  unwritten_.clear();
  if (FileIdentity::of(path_) == FileIdentity::of(file_.get())) return;
  throw DataError(path_ +
                  ": was removed or renamed during the run; if it was renamed, new lines still go to the renamed file");
}

}  // namespace phalanx
