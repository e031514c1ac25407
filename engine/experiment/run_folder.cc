#include "engine/experiment/run_folder.h"

#include <filesystem>

#include "framework/base/error.h"

namespace phalanx {

namespace fs = std::filesystem;

RunFolder RunFolder::create(const std::string& path, bool goes_on) {
  RunFolder folder(path);
  std::error_code error;
  for (const auto& file : {folder.metrics(), folder.summary()}) {
    if (!goes_on && fs::exists(file, error)) {
      throw ConfigError("run folder " + path + " already holds a run (" + file +
                        "); name another, or go on with it (--resume auto)");
    }
  }
  fs::create_directories(folder.logs(), error);
  if (error) throw ConfigError("run folder " + path + " cannot be made: " + error.message());
  return folder;
}

}  // namespace phalanx
