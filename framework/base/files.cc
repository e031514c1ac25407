#include "framework/base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "framework/base/error.h"

namespace phalanx {
namespace {

[[noreturn]] void fail(const std::string& path) {
  throw DataError(path + ": " + std::generic_category().message(errno));
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_;
};

bool write_and_sync(const std::string& path, std::string_view text) {
  const Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.valid()) return false;
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(file.get()) == 0;
}

// In the same folder, because rename() is atomic only within one file system; of this process and call, so that two
// writers of one file do not mix their texts.
std::string temporary_name(const std::string& path) {
  static std::atomic<int> calls{0};
  return path + "." + std::to_string(::getpid()) + "." + std::to_string(calls++) + ".tmp";
}

}  // namespace

std::string read_file(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  if (!file.valid()) fail(path);
  std::string text;
  std::array<char, 1 << 16> chunk;
  while (const ssize_t count = ::read(file.get(), chunk.data(), chunk.size())) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path);
    text.append(chunk.data(), static_cast<std::size_t>(count));
  }
  return text;
}

void write_atomically(const std::string& path, std::string_view text) {
  const std::string temporary = temporary_name(path);
  if (!write_and_sync(temporary, text) || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    ::unlink(temporary.c_str());
    errno = reason;
    fail(path);
  }
  // The new name lives in the folder, which has to reach the disk too. Some file systems cannot sync a folder; the
  // text itself is safe there, so that is no failure.
  const auto folder = std::filesystem::path(path).parent_path();
  const Descriptor opened(folder.empty() ? "." : folder.string(), O_RDONLY | O_DIRECTORY);
  if (opened.valid()) ::fsync(opened.get());
}

}  // namespace phalanx
