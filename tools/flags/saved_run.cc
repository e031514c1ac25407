#include "tools/flags/saved_run.h"

#include <filesystem>

#include "engine/experiment/run_folder.h"
#include "framework/base/error.h"

namespace phalanx {

SavedRun find_saved_run(const std::string& tool, const std::string& run, const std::string& weights,
                        const std::string& config) {
  const RunFolder folder(run);
  const auto choose = [&](const std::string& given, const std::string& of_run, const char* what) {
    const std::string file = given.empty() && !run.empty() ? of_run : given;
    if (file.empty()) {
      throw ConfigError(std::string("no ") + what + ": " + tool + " --run RUN, or --weights FILE --config FILE");
    }
    if (!std::filesystem::exists(file)) throw ConfigError(file + ": no such file");
    return file;
  };
  return {.weights = choose(weights, folder.weights(), "weights"), .config = choose(config, folder.config(), "config")};
}

}  // namespace phalanx
