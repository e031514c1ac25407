// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/parse_flags.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "framework/base/config/meant.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/base/version.h"

namespace phalanx {
namespace {

// Returns true if the program itself defines the flag: libraries define flags too. The name of a file begins with "./"
// if another file includes it (bazel/unity.bzl).
bool belongs_to(const Program& program, const google::CommandLineFlagInfo& flag) {
  std::string_view file = flag.filename;
  if (file.starts_with("./")) file.remove_prefix(2);
  return file.starts_with(program.files);
}

std::optional<google::CommandLineFlagInfo> find(const Program& program, const std::string& name) {
  google::CommandLineFlagInfo info;
  const bool there = google::GetCommandLineFlagInfo(name.c_str(), &info) && belongs_to(program, info);
  return there ? std::optional(info) : std::nullopt;
}

std::vector<google::CommandLineFlagInfo> flags_of(const Program& program) {
  std::vector<google::CommandLineFlagInfo> flags;
  google::GetAllFlags(&flags);
  std::erase_if(flags, [&](const auto& flag) { return !belongs_to(program, flag); });
  return flags;
}

// Returns the assignment that the flag and the following word were meant to be, in the syntax of --set:
// "optimizer.lr=0.1".
std::string as_assignment(const std::string& path, const WrittenFlag& flag, const std::string& next) {
  const bool follows = !next.empty() && !as_flag(next);
  return path + "=" + flag.value.value_or(follows ? next : "VALUE");
}

std::string meant(const Program& program, const WrittenFlag& flag, const std::string& next) {
  std::vector<std::string> names{"help", "version"};
  for (const auto& own : flags_of(program)) names.push_back(own.name);
  const std::string near = nearest(flag.name, names), path = config::path_meant_by(flag.name, program.keys);
  const bool is_key = path == flag.name || path.ends_with("." + flag.name);
  if (path.empty() || (!near.empty() && !is_key)) return near.empty() ? "" : "--" + near;
  const std::string assignment = as_assignment(path, flag, next);
  return "--set " + (assignment.find(' ') == assignment.npos ? assignment : "'" + assignment + "'");
}

[[noreturn]] void refuse_unknown(const Program& program, const WrittenFlag& flag, const std::string& word,
                                 const std::string& next) {
  const std::string intended = meant(program, flag, next);
  throw ConfigError("unknown flag \"" + word + "\"" + (intended.empty() ? "" : ", did you mean " + intended + "?") +
                    " See --help");
}

std::string kind_of(const std::string& type) {
  if (type == "bool") return "true or false";
  return type == "double" ? "a number" : "a whole number that is not too large";
}

void set(const google::CommandLineFlagInfo& flag, const std::string& value) {
  // gflags also accepts 1, yes and the like.
  const bool fits = flag.type != "bool" || value == "true" || value == "false";
  if (fits && !google::SetCommandLineOption(flag.name.c_str(), value.c_str()).empty()) return;
  throw ConfigError("--" + flag.name + "=" + value + ": expected " + kind_of(flag.type));
}

constexpr std::size_t kColumns = 100;

// Returns the text of one flag for --help: its name, and next to it the description in lines of kColumns.
std::string described(const std::string& name, const std::string& about, std::size_t width) {
  std::string text, line = "  --" + name + std::string(width - name.size() + 2, ' ');
  const std::string indentation(line.size(), ' ');
  std::istringstream words(about);
  for (std::string word; words >> word;) {
    if (line.size() + word.size() > kColumns && line != indentation) {
      text += line.erase(line.find_last_not_of(' ') + 1) + "\n";
      line = indentation;
    }
    line += word + " ";
  }
  return text + line.erase(line.find_last_not_of(' ') + 1) + "\n";
}

std::string with_default(const google::CommandLineFlagInfo& flag) {
  const bool none = flag.default_value.empty() || flag.type == "bool";
  return flag.description + (none ? "" : " (default: " + flag.default_value + ")");
}

[[noreturn]] void help(const Program& program) {
  std::vector<std::pair<std::string, std::string>> flags{{"help", "print this text, and exit"},
                                                         {"version", "print the version, and exit"}};
  for (const auto& flag : flags_of(program)) flags.emplace_back(flag.name, with_default(flag));
  std::ranges::sort(flags);
  std::size_t width = 0;
  for (const auto& [name, about] : flags) width = std::max(width, name.size());
  std::printf("%s: %s\n\nFlags, each as --name=value or --name value:\n", ::program_invocation_short_name,
              program.purpose.c_str());
  for (const auto& [name, about] : flags) std::fputs(described(name, about, width).c_str(), stdout);
  std::exit(EXIT_SUCCESS);
}

[[noreturn]] void tell_version() {
  std::printf("%s version %s\n", ::program_invocation_short_name, kVersion);
  std::exit(EXIT_SUCCESS);
}

}  // namespace

std::optional<WrittenFlag> as_flag(const std::string& word) {
  const auto begin = word.find_first_not_of('-');
  if (begin == std::string::npos || begin == 0 || begin > 2) return std::nullopt;
  const auto equals = word.find('=');
  if (equals == std::string::npos) return WrittenFlag{word.substr(begin), std::nullopt};
  return WrittenFlag{word.substr(begin, equals - begin), word.substr(equals + 1)};
}

std::vector<std::string> parse_flags(const Program& program, const std::vector<std::string>& words) {
  std::vector<std::string> others;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto written = as_flag(words[i]);
    if (!written) {
      others.push_back(words[i]);
      continue;
    }
    const auto& [name, value] = *written;
    if (name == "help" || name == "h") help(program);
    if (name == "version") tell_version();
    const auto flag = find(program, name);
    const auto opposite = name.starts_with("no") && !value ? find(program, name.substr(2)) : std::nullopt;
    if (flag && (value || flag->type == "bool")) {
      set(*flag, value.value_or("true"));
    } else if (flag) {
      if (++i == words.size()) throw ConfigError("--" + name + " needs a value after it");
      set(*flag, words[i]);
    } else if (opposite && opposite->type == "bool") {
      set(*opposite, "false");
    } else {
      refuse_unknown(program, *written, words[i], i + 1 < words.size() ? words[i + 1] : "");
    }
  }
  return others;
}

std::vector<std::string> parse_flags(const Program& program, int argc, char** argv) {
  return parse_flags(program, {argv + std::min(argc, 1), argv + argc});
}

void refuse(const std::vector<std::string>& others) {
  if (!others.empty()) throw ConfigError("unexpected argument \"" + others.front() + "\"; see --help");
}

}  // namespace phalanx
