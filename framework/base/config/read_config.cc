// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/read_config.h"

#include <filesystem>
#include <system_error>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/text.h"

namespace phalanx::config {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& why) { throw ConfigError("cannot read the config: " + why); }

}  // namespace

std::string read_config(const std::string& path) {
  std::error_code unknown;  // ignored: read_file() reports the reason
  const auto kind = fs::status(path, unknown).type();
  // Reading a FIFO lasts until its writer ends, and reading /dev/zero lasts forever.
  if (kind == fs::file_type::fifo || kind == fs::file_type::character || kind == fs::file_type::socket ||
      kind == fs::file_type::block) {
    refuse(path + ": is not a regular file; write the config to one");
  }
  const auto size = fs::file_size(path, unknown);
  if (!unknown && size > static_cast<std::uintmax_t>(kLargestConfig)) {
    refuse(path + ": has " + format_bytes(static_cast<std::int64_t>(size)) + "; a config has at most " +
           format_bytes(kLargestConfig));
  }
  try {
    return read_file(path);
  } catch (const DataError& error) {
    refuse(error.what());
  }
}

}  // namespace phalanx::config
