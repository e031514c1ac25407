// SPDX-License-Identifier: Apache-2.0
#include "tools/config/saved_run.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/run_folder.h"
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

// Sets the fields "encoding" of a dataset and of the datasets that it contains, if they are empty.
class TakeEncoding final : public config::Visitor {
 public:
  explicit TakeEncoding(std::string path) : path_(std::move(path)) {}

 private:
  bool enter(const config::Field&) override { return true; }
  void leave(const config::Field&) override {}
  void visit(const config::Field&, bool&) override {}
  void visit(const config::Field&, std::int64_t&) override {}
  void visit(const config::Field&, double&) override {}
  void visit(const config::Field& field, std::string& value) override {
    if (field.key == std::string_view("encoding") && value.empty()) value = path_;
  }
  void visit(const config::Field&, std::optional<double>&) override {}
  void visit(const config::Field&, std::vector<std::int64_t>&) override {}
  void visit(const config::Field&, std::vector<double>&) override {}
  void visit(const config::Field&, std::vector<std::string>&) override {}
  void visit(const config::Field&, config::Selection& value) override { value.visit_selected(*this); }
  void visit(const config::Field&, config::SectionList&) override {}
  void visit(const config::Field&, config::SectionMap&) override {}

  const std::string path_;
};

}  // namespace

// Ignores errors of syntax, which are reported when the config is loaded.
void refuse_unnamed_plugins(const std::string& text, const std::string& origin,
                            const std::vector<std::string>& overrides) {
  if (std::ranges::any_of(overrides, [](const std::string& set) { return set.starts_with("plugins="); })) return;
  std::vector<ConfigProblem> ignored;
  const auto root = config::parse({text, origin}, ignored);
  const auto* const plugins = config::find(root, "plugins");
  if (plugins == nullptr || plugins->value.kind == config::Node::Kind::kNull) return;
  if (plugins->value.kind == config::Node::Kind::kList && plugins->value.items.empty()) return;
  throw ConfigError({ConfigProblem{.origin = origin,
                                   .line = plugins->location.line,
                                   .column = plugins->location.column,
                                   .key = "plugins",
                                   .message = "plug-ins are code, and a run folder's plug-ins are loaded only if the "
                                              "command line names them too; if you trust them, add " +
                                              flag_for(plugins->value)}});
}

void SavedRunFlags::add_to(Flags& flags) {
  flags.add("run", &run,
            "run folder whose config.yaml and weights.safetensors, and embeddings.safetensors if there is one, to use; "
            "--run may be omitted");
  flags.add("weights", &weights,
            "safetensors file, in place of the run's; embeddings.safetensors must be in the same folder");
  flags.add("config", &config, "YAML file of a run with these weights, in place of the run's");
  flags.add_overrides(&overrides, kOverridesHelp);
}

SavedRun find_saved_run(const std::string& command, const SavedRunFlags& flags) {
  const RunFolder folder(flags.run);
  const auto choose = [&](const std::string& given, const std::string& of_run, const char* what) {
    const std::string file = given.empty() && !flags.run.empty() ? of_run : given;
    if (file.empty()) {
      throw ConfigError(std::string("no ") + what + ": " + command + " --run RUN, or --weights FILE --config FILE");
    }
    if (!std::filesystem::exists(file)) throw ConfigError(file + ": no such file");
    return file;
  };
  SavedRun saved{.weights = choose(flags.weights, folder.weights(), "weights"),
                 .config = choose(flags.config, folder.config(), "config")};
  const auto dataset = std::filesystem::path(saved.config).parent_path() / "dataset.json";
  if (std::filesystem::exists(dataset)) saved.dataset = std::filesystem::absolute(dataset).string();
  if (flags.config.empty()) refuse_unnamed_plugins(config::read_config(saved.config), saved.config, flags.overrides);
  return saved;
}

void take_encoding(config::Selection& dataset, const SavedRun& run) {
  if (run.dataset.empty()) return;
  TakeEncoding visitor(run.dataset);
  dataset.visit_selected(visitor);
}

}  // namespace phalanx
