// SPDX-License-Identifier: Apache-2.0
#include "engine/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"

namespace phalanx {

namespace fs = std::filesystem;

namespace {

// Waits up to 3 s, because the last process of a killed run may take a moment to end.
constexpr int kAttempts = 30;
constexpr std::chrono::milliseconds kPause(100);

}  // namespace

RunFolder RunFolder::create(const std::string& path, bool goes_on) {
  RunFolder folder(path);
  std::error_code error;
  if (!goes_on) folder.refuse_if_held();
  fs::create_directories(folder.logs(), error);
  if (error) throw ConfigError("run folder " + path + " cannot be created: " + error.message());
  return folder;
}

void RunFolder::refuse_if_held() const {
  std::error_code none;
  for (const auto& file : {metrics(), summary(), checkpoints()}) {
    if (!fs::exists(file, none) || (file == checkpoints() && fs::is_empty(file, none))) continue;
    throw ConfigError("run folder " + path_ + " already holds a run (" + file +
                      "); choose another folder, or resume the run (--resume auto)");
  }
}

// Takes a lock of the open file. Forked processes share it, and the system releases it when the last of them has ended.
// mpirun, which waits for its ranks, must hold it too, so the file is not closed on exec.
std::shared_ptr<void> RunFolder::claim() const {
  const std::string path = path_ + "/.lock";
  const auto file = std::make_shared<Descriptor>(::open(path.c_str(), O_RDWR | O_CREAT, 0644));
  if (!file->valid()) throw ConfigError(path + " cannot be opened: " + std::strerror(errno));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (::flock(file->get(), LOCK_EX | LOCK_NB) == 0) return file;
    const int problem = errno;
    if (problem != EWOULDBLOCK && problem != EINTR) {
      throw ConfigError(path + " cannot be locked: " + std::strerror(problem));
    }
    std::this_thread::sleep_for(kPause);
  }
  throw ConfigError("another run is using the run folder " + path_ +
                    "; wait for it, stop it, or choose another folder");
}

}  // namespace phalanx
