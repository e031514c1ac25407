#include "tools/flags/parse_flags.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/base/version.h"

namespace phalanx {
namespace {

// Libraries bring flags of their own, which are none of the program's.
std::optional<google::CommandLineFlagInfo> find(const Program& program, const std::string& name) {
  google::CommandLineFlagInfo info;
  const bool there = google::GetCommandLineFlagInfo(name.c_str(), &info) && info.filename.starts_with(program.files);
  return there ? std::optional(info) : std::nullopt;
}

std::vector<std::string> own_flags(const Program& program) {
  std::vector<google::CommandLineFlagInfo> all;
  google::GetAllFlags(&all);
  std::vector<std::string> names{"help", "version"};
  for (const auto& flag : all) {
    if (flag.filename.starts_with(program.files)) names.push_back(flag.name);
  }
  return names;
}

[[noreturn]] void refuse_unknown(const Program& program, const WrittenFlag& flag, const std::string& word) {
  const std::string near = nearest(flag.name, own_flags(program));
  throw ConfigError("unknown flag \"" + word + "\"" + (near.empty() ? "" : ", did you mean --" + near + "?") +
                    " See --help");
}

std::string kind_of(const std::string& type) {
  if (type == "bool") return "true or false";
  return type == "double" ? "a number" : "a whole number that is not too large";
}

void set(const google::CommandLineFlagInfo& flag, const std::string& value) {
  // gflags also takes 1, yes and the like.
  const bool fits = flag.type != "bool" || value == "true" || value == "false";
  if (fits && !google::SetCommandLineOption(flag.name.c_str(), value.c_str()).empty()) return;
  throw ConfigError("--" + flag.name + "=" + value + ": expected " + kind_of(flag.type));
}

[[noreturn]] void help(const Program& program) {
  google::SetUsageMessage(program.purpose);
  google::ShowUsageWithFlagsRestrict(::program_invocation_short_name, program.files.c_str());
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
    if (name == "help") help(program);
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
      refuse_unknown(program, *written, words[i]);
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
