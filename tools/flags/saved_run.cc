#include "tools/flags/saved_run.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "engine/experiment/run_folder.h"
#include "framework/base/config/parse.h"
#include "framework/base/config/read_config.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

bool plain(const std::string& path) {
  return !path.empty() && path.front() != '-' && std::ranges::all_of(path, [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("/._+-").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

// Returns the flag that names the same plug-ins. It repeats only plain paths, since people paste it into a shell.
std::string flag_for(const config::Node& plugins) {
  std::vector<std::string> paths;
  for (const auto& item : plugins.items) paths.push_back(plain(item.text) ? item.text : "FILE");
  if (paths.empty()) paths.push_back(plain(plugins.text) ? plugins.text : "FILE");
  return "--set 'plugins=[" + join(paths, ", ") + "]'";
}

// Ignores errors of syntax, which are reported when the config is loaded.
void refuse_unnamed_plugins(const std::string& config, const std::vector<std::string>& overrides) {
  if (std::ranges::any_of(overrides, [](const std::string& set) { return set.starts_with("plugins="); })) return;
  std::vector<ConfigProblem> ignored;
  const auto root = config::parse({config::read_config(config), config}, ignored);
  const auto* const plugins = config::find(root, "plugins");
  if (plugins == nullptr || plugins->value.kind == config::Node::Kind::kNull) return;
  if (plugins->value.kind == config::Node::Kind::kList && plugins->value.items.empty()) return;
  throw ConfigError({ConfigProblem{.origin = config,
                                   .line = plugins->location.line,
                                   .column = plugins->location.column,
                                   .key = "plugins",
                                   .message = "plug-ins are code, and those of a run folder are loaded only if the "
                                              "command line names them too; if you trust them, add " +
                                              flag_for(plugins->value)}});
}

}  // namespace

SavedRun find_saved_run(const std::string& tool, const std::string& run, const std::string& weights,
                        const std::string& config, const std::vector<std::string>& overrides) {
  const RunFolder folder(run);
  const auto choose = [&](const std::string& given, const std::string& of_run, const char* what) {
    const std::string file = given.empty() && !run.empty() ? of_run : given;
    if (file.empty()) {
      throw ConfigError(std::string("no ") + what + ": " + tool + " --run RUN, or --weights FILE --config FILE");
    }
    if (!std::filesystem::exists(file)) throw ConfigError(file + ": no such file");
    return file;
  };
  const SavedRun saved{.weights = choose(weights, folder.weights(), "weights"),
                       .config = choose(config, folder.config(), "config")};
  if (config.empty()) refuse_unnamed_plugins(saved.config, overrides);
  return saved;
}

}  // namespace phalanx
