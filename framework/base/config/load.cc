#include "framework/base/config/load.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "framework/base/config/loading_visitor.h"
#include "framework/base/config/override.h"
#include "framework/base/config/parse.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx::config {
namespace {

// The order in which they are mended: the file from top to bottom, then what the file lacks, then the flags as given.
void sort(std::vector<ConfigProblem>& problems, const std::vector<std::string>& overrides) {
  const auto position = [&](const ConfigProblem& problem) {
    const auto from_flag = [&](const auto& assignment) { return problem.origin == origin_of(assignment); };
    const auto flag = std::ranges::find_if(overrides, from_flag);
    const auto source = flag == overrides.end() ? 0 : 1 + (flag - overrides.begin());
    const int line = problem.line > 0 ? problem.line : std::numeric_limits<int>::max();
    return std::tuple(source, line, problem.column);
  };
  std::ranges::stable_sort(problems, {}, position);
}

}  // namespace

void load_file_into(const Visit& visit, const std::string& path, const std::vector<std::string>& overrides) {
  std::string text;
  try {
    text = read_file(path);
  } catch (const DataError& error) {
    throw ConfigError(std::string("cannot read the config: ") + error.what());
  }
  load_text_into(visit, text, path, overrides);
}

void load_text_into(const Visit& visit, const std::string& text, const std::string& origin,
                    const std::vector<std::string>& overrides) {
  std::vector<ConfigProblem> problems;
  Node root = parse({text, origin}, problems);
  root.location.origin = origin;
  if (root.kind == Node::Kind::kScalar || root.kind == Node::Kind::kList) {
    const SourceLocation& location = root.location;
    problems.push_back({.origin = origin,
                        .line = location.line,
                        .column = location.column,
                        .message = "expected lines of the form \"key: value\", got " + what_is(root)});
  }
  const bool readable = root.kind == Node::Kind::kMap || problems.empty();
  for (const auto& assignment : overrides) lay_over(root, assignment, problems);
  // Of a file that could not be read, every field would be missing.
  if (readable) {
    LoadingVisitor loading(root);
    visit(loading);
    std::ranges::move(loading.finish(), std::back_inserter(problems));
  }
  if (problems.empty()) return;
  sort(problems, overrides);
  throw ConfigError(std::move(problems));
}

}  // namespace phalanx::config
