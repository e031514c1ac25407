// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/suite/suite.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "framework/base/config/loading_visitor.h"
#include "framework/base/config/locate.h"
#include "framework/base/config/parse.h"
#include "framework/base/config/read_config.h"
#include "framework/base/text.h"
#include "tools/regress/suite/open_keys.h"

namespace phalanx::regress {
namespace {

namespace fs = std::filesystem;

// Returns the regular files that a pattern matches, sorted.
std::vector<std::string> matching(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> files;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (std::size_t i = 0; i < found.gl_pathc; ++i) {
      std::error_code none;
      if (fs::is_regular_file(found.gl_pathv[i], none)) files.emplace_back(found.gl_pathv[i]);
    }
  }
  ::globfree(&found);
  return files;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& file : matching(folder + "/*.yaml")) names.push_back(fs::path(file).filename());
  return names;
}

ConfigProblem problem_of(const config::SourceLocation& location, const std::string& key, const std::string& message) {
  return {.origin = location.origin, .line = location.line, .column = location.column, .key = key, .message = message};
}

// Returns the place of the item `index` of the list `key` of an entry.
config::SourceLocation place_of(const config::Node& tree, std::size_t entry, const char* key, std::size_t index) {
  const auto* cases = find(tree, "cases");
  const auto* list = cases ? find(cases->value.items.at(entry), key) : nullptr;
  return list ? list->value.items.at(index).location : tree.location;
}

std::vector<std::string> find_files(const Suite& suite, std::size_t entry, std::vector<ConfigProblem>& problems) {
  const auto& patterns = suite.config.cases[entry].configs;
  const fs::path root = suite.root();
  std::vector<std::string> files;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const auto found = matching(root / patterns[i]);
    files.insert(files.end(), found.begin(), found.end());
    if (!found.empty()) continue;
    auto problem = problem_of(place_of(suite.tree, entry, "configs", i), "cases[" + std::to_string(entry) + "].configs",
                              "there is no config " + (root / patterns[i]).string());
    problem.suggestion = nearest(patterns[i], names_in(root));
    problems.push_back(problem);
  }
  std::ranges::sort(files);
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

// An exclusion by a key that the matrix does not have would never apply.
void check_exclusions(const Suite& suite, std::size_t entry, std::vector<ConfigProblem>& problems) {
  const auto& matrix = suite.config.cases[entry].matrix;
  const auto& exclusions = suite.config.cases[entry].exclude;
  for (std::size_t i = 0; i < exclusions.size(); ++i) {
    for (const auto& [axis, values] : exclusions[i].when) {
      if (matrix.contains(axis)) continue;
      problems.push_back(problem_of(place_of(suite.tree, entry, "exclude", i),
                                    "cases[" + std::to_string(entry) + "].exclude",
                                    "the matrix has no key \"" + axis + "\""));
    }
  }
}

// A case is a run of a config or a command.
void check_commands(const Suite& suite, std::size_t entry, std::vector<ConfigProblem>& problems) {
  const EntryConfig& config = suite.config.cases[entry];
  if (config.commands.empty()) return;
  if (!config.configs.empty() || !config.set.empty() || !config.matrix.empty()) {
    problems.push_back(
        suite.problem_at(entry, "", "commands", "an entry has either commands, or configs with `set` and `matrix`"));
  }
  for (const auto& command : config.commands) {
    if (!command.name.empty() && !command.run.empty()) continue;
    problems.push_back(suite.problem_at(entry, "", "commands", "a command needs a name, and something to run"));
  }
}

void check_entries(const Suite& suite, std::vector<ConfigProblem>& problems) {
  if (suite.config.cases.empty()) {
    problems.push_back({.origin = suite.path, .key = "cases", .message = "the suite has no cases"});
  }
  for (std::size_t i = 0; i < suite.config.cases.size(); ++i) {
    const EntryConfig& entry = suite.config.cases[i];
    if (entry.configs.empty() && entry.commands.empty()) {
      problems.push_back(suite.problem_at(i, "", "configs", "the entry names no configs and no commands"));
    }
    check_commands(suite, i, problems);
    check_exclusions(suite, i, problems);
  }
}

}  // namespace

std::string Suite::root() const { return (fs::path(path).parent_path() / config.root).lexically_normal(); }

ConfigProblem Suite::problem_at(std::size_t entry, const std::string& section, const std::string& key,
                                const std::string& message) const {
  const std::string path = "cases[" + std::to_string(entry) + "]";
  const auto* cases = find(tree, "cases");
  const config::Node& node = cases->value.items.at(entry);
  const auto* inner = section.empty() ? nullptr : find(node, section);
  const auto* written = find(inner ? inner->value : node, key);
  return problem_of(written ? written->location : node.location,
                    config::path_of(section.empty() ? path : path + "." + section, key), message);
}

Suite load_suite(const std::string& path) {
  Suite suite{.path = path, .name = fs::path(path).stem()};
  std::vector<ConfigProblem> problems;
  const std::string text = config::read_config(path);
  suite.tree = config::parse({text, path}, problems);
  suite.tree.location.origin = path;
  if (problems.empty() && suite.tree.kind != config::Node::Kind::kMap) {
    problems.push_back(problem_of(suite.tree.location, "", "expected a suite, got " + config::what_is(suite.tree)));
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
  config::Node schema = suite.tree;
  rewrite_open_keys(schema, problems);
  config::LoadingVisitor loading(schema);
  suite.config.visit(static_cast<config::Visitor&>(loading));
  std::ranges::move(loading.finish(), std::back_inserter(problems));
  if (problems.empty()) {
    check_entries(suite, problems);
    for (std::size_t i = 0; i < suite.config.cases.size(); ++i) suite.files.push_back(find_files(suite, i, problems));
  }
  if (problems.empty()) return suite;
  config::sort_by_place(problems, {});
  throw ConfigError(std::move(problems));
}

}  // namespace phalanx::regress
