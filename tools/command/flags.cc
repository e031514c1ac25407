// SPDX-License-Identifier: Apache-2.0
#include "tools/command/flags.h"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <system_error>
#include <type_traits>
#include <utility>

#include "framework/base/config/suggest.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/base/version.h"

namespace phalanx {
namespace {

bool is_switch(const Flags::Variable& variable) { return std::holds_alternative<bool*>(variable); }

template <class Number>
std::string text_of(Number number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), number).ptr);
}

// Returns the default that --help shows: none for switches and lists.
std::string default_of(const Flags::Variable& variable) {
  return std::visit(
      [](const auto* value) -> std::string {
        using Value = std::remove_cvref_t<decltype(*value)>;
        if constexpr (std::is_same_v<Value, std::string>) return *value;
        if constexpr (std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>) return text_of(*value);
        return "";
      },
      variable);
}

bool read(const std::string& text, std::floating_point auto& value) {
  const char* const end = text.data() + text.size();
  return std::from_chars(text.data(), end, value) == std::from_chars_result{end, std::errc()};
}

bool read(const std::string& text, std::integral auto& value) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data() + (hexadecimal ? 2 : 0), end, value, hexadecimal ? 16 : 10);
  return result == std::from_chars_result{end, std::errc()};
}

bool read(const std::string& text, bool& value) {
  value = text == "true";
  return value || text == "false";
}

bool read(const std::string& text, std::string& value) {
  value = text;
  return true;
}

bool read(const std::string& text, std::vector<std::string>& values) {
  values.push_back(text);
  return true;
}

std::string kind_of(const Flags::Variable& variable) {
  if (is_switch(variable)) return "true or false";
  return std::holds_alternative<double*>(variable) ? "a number" : "a whole number that is not too large";
}

// Returns true for a word such as "optimizer.lr=0.1". A path with an equals sign in a name has a slash before it.
bool is_assignment(const std::string& word) {
  const auto equals = word.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  return word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.[]") == equals;
}

// Returns the assignment that the flag and the following word were meant to be, in the syntax of --set:
// "optimizer.lr=0.1".
std::string as_assignment(const std::string& path, const WrittenFlag& flag, const std::string* next) {
  const bool follows = next != nullptr && !next->empty() && !as_flag(*next);
  return path + "=" + flag.value.value_or(follows ? *next : "VALUE");
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

}  // namespace

void print_version(const std::string& name) {
  std::printf("%s version %s\n", name.c_str(), kVersion);
  std::exit(EXIT_SUCCESS);
}

std::optional<WrittenFlag> as_flag(const std::string& word) {
  const auto begin = word.find_first_not_of('-');
  if (begin == std::string::npos || begin == 0 || begin > 2) return std::nullopt;
  const auto equals = word.find('=');
  if (equals == std::string::npos) return WrittenFlag{word.substr(begin), std::nullopt};
  return WrittenFlag{word.substr(begin, equals - begin), word.substr(equals + 1)};
}

Flags::Flags(const Arguments& arguments, std::vector<std::string> examples, std::string notes)
    : name_(arguments.name), purpose_(arguments.purpose), examples_(std::move(examples)), notes_(std::move(notes)) {}

void Flags::add(const std::string& name, Variable variable, const std::string& help) {
  flags_.push_back({.name = name, .variable = variable, .help = help, .default_text = default_of(variable)});
}

void Flags::add_path(const std::string& name, std::string* variable, const std::string& help) {
  add(name, variable, help);
  flags_.back().may_be_empty = false;
}

void Flags::add_overrides(std::vector<std::string>* overrides, const std::string& help, std::vector<std::string> keys) {
  add("set", overrides, help);
  overrides_ = overrides;
  keys_ = std::move(keys);
}

std::vector<std::string> Flags::parse(const std::vector<std::string>& words) const {
  std::vector<std::string> others;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto written = as_flag(words[i]);
    if (!written) {
      (overrides_ != nullptr && is_assignment(words[i]) ? *overrides_ : others).push_back(words[i]);
      continue;
    }
    if (written->name == "help" || written->name == "h") print_help();
    if (written->name == "version") print_version(name_);
    if (written->name == kListFlag) print_completions();
    if (set(*written, words[i], i + 1 < words.size() ? &words[i + 1] : nullptr)) ++i;
  }
  return others;
}

const Flags::Flag* Flags::find(const std::string& name) const {
  const auto found = std::ranges::find(flags_, name, &Flag::name);
  return found == flags_.end() ? nullptr : &*found;
}

bool Flags::set(const WrittenFlag& written, const std::string& word, const std::string* next) const {
  const auto& [name, value] = written;
  const Flag* flag = find(name);
  std::string text = value.value_or("true");
  if (flag == nullptr && !value && name.starts_with("no")) {
    flag = find(name.substr(2));
    if (flag != nullptr && !is_switch(flag->variable)) flag = nullptr;
    text = "false";
  }
  if (flag == nullptr) {
    const std::string intended = meant(written, next);
    throw ConfigError("unknown flag \"" + word + "\"" +
                      (intended.empty() ? "; see --help" : ", did you mean " + intended + "? See --help"));
  }
  const bool takes_next = !value && !is_switch(flag->variable);
  if (takes_next) {
    const char* const what =
        std::holds_alternative<std::vector<std::string>*>(flag->variable) ? "key=value" : "a value";
    if (next == nullptr) throw ConfigError("--" + name + " needs " + what + " after it");
    text = *next;
  }
  if (text.empty() && !flag->may_be_empty) {
    throw ConfigError("--" + flag->name + ": is empty; give a path, or leave the flag out");
  }
  if (!std::visit([&](auto* variable) { return read(text, *variable); }, flag->variable)) {
    throw ConfigError("--" + flag->name + "=" + text + ": expected " + kind_of(flag->variable));
  }
  return takes_next;
}

std::string Flags::meant(const WrittenFlag& written, const std::string* next) const {
  std::vector<std::string> names{"help", "version"};
  for (const auto& flag : flags_) names.push_back(flag.name);
  const std::string near = nearest(written.name, names), path = config::suggest_path(written.name, keys_);
  const bool is_key = path == written.name || path.ends_with("." + written.name);
  if (path.empty() || (!near.empty() && !is_key)) return near.empty() ? "" : "--" + near;
  const std::string assignment = as_assignment(path, written, next);
  return "--set " + (assignment.find(' ') == assignment.npos ? assignment : "'" + assignment + "'");
}

void Flags::print_help() const {
  std::vector<std::pair<std::string, std::string>> flags{{"help", "print this text, and exit"},
                                                         {"version", "print the version, and exit"}};
  for (const auto& flag : flags_) {
    const auto& shown = flag.default_text;
    flags.emplace_back(flag.name, flag.help + (shown.empty() ? "" : " (default: " + shown + ")"));
  }
  std::ranges::sort(flags);
  std::size_t width = 0;
  for (const auto& [name, about] : flags) width = std::max(width, name.size());
  std::string text = name_ + ": " + purpose_ + "\n";
  if (!examples_.empty()) text += "\n";
  for (const auto& example : examples_) text += "  " + name_ + (example.empty() ? "" : " " + example) + "\n";
  if (!notes_.empty()) text += "\n" + notes_ + "\n";
  text += "\nFlags, each as --name=value or --name value:\n";
  for (const auto& [name, about] : flags) text += described(name, about, width);
  std::fputs(text.c_str(), stdout);
  std::exit(EXIT_SUCCESS);
}

void Flags::print_completions() const {
  for (const auto& flag : flags_) std::printf("--%s\n", flag.name.c_str());
  std::puts("--help\n--version");
  for (const auto& key : keys_) std::printf("%s=\n", key.c_str());
  std::exit(EXIT_SUCCESS);
}

void take_positional(std::vector<std::string>& words, std::string& value) {
  if (!value.empty() || words.empty()) return;
  value = words.front();
  words.erase(words.begin());
}

void refuse(const std::vector<std::string>& others) {
  if (!others.empty()) throw ConfigError("unexpected argument \"" + others.front() + "\"; see --help");
}

}  // namespace phalanx
