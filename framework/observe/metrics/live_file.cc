// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/metrics/live_file.h"

#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace phalanx {

LiveFile::LiveFile(std::string path, Exposition run)
    : path_(std::move(path)), exposition_(std::move(run)), next_(std::chrono::steady_clock::now()) {
  remove();  // a run that was killed may have left its own
}

LiveFile::~LiveFile() { remove(); }

void LiveFile::remove() const {
  std::error_code ignored;  // the file may not exist
  std::filesystem::remove(path_, ignored);
}

// The text is not forced to the disk: it is of no use after a crash of the system.
void LiveFile::add(const MetricsRecord& record) {
  exposition_.add(record);
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kInterval;
  const std::string temporary = path_ + ".new";
  std::ofstream file(temporary, std::ios::binary);
  file << to_text(exposition_);
  file.close();
  std::error_code ignored;
  if (file) {
    std::filesystem::rename(temporary, path_, ignored);
  } else {
    std::filesystem::remove(temporary, ignored);
  }
}

}  // namespace phalanx
