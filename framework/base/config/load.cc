// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <utility>

#include "framework/base/config/config.h"
#include "framework/base/config/loading_visitor.h"
#include "framework/base/config/locate.h"
#include "framework/base/config/override.h"
#include "framework/base/config/parse.h"
#include "framework/base/config/read_config.h"
#include "framework/base/error.h"

namespace phalanx::config {

void load_file_into(const Visit& visit, const std::string& path, const std::vector<std::string>& overrides) {
  try {
    load_text_into(visit, read_config(path), path, overrides);
  } catch (const ConfigError& error) {
    // An error that visit() itself throws has keys, but no places.
    throw located(error, {path, overrides});
  }
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
  for (const auto& assignment : overrides) apply_override(root, assignment, problems);
  // If the file could not be parsed, every field would be reported as missing.
  if (readable) {
    LoadingVisitor loading(root);
    visit(loading);
    std::ranges::move(loading.finish(), std::back_inserter(problems));
  }
  if (problems.empty()) return;
  sort_by_place(problems, overrides);
  throw ConfigError(std::move(problems));
}

}  // namespace phalanx::config
