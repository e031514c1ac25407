// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tools/command/arguments.h"

namespace phalanx {

/// A flag as written: "--set=a=b" has the name "set" and the value "a=b".
struct WrittenFlag {
  std::string name;
  std::optional<std::string> value;  // text after an equals sign
};

/// Returns nullopt for a word that is not a flag.
std::optional<WrittenFlag> as_flag(const std::string& word);

/// The flag that makes Flags::parse() print what could follow on the command line, for shells (completion.h).
inline constexpr const char* kListFlag = "list_completions";

/// The flags of one command, each bound to a variable:
///
///     std::string split = "test";  // the value that a variable has when its flag is added is the default
///     Flags flags(arguments, {"runs/NAME --split validation"});
///     flags.add("split", &split, "test or validation");
///     refuse(flags.parse(arguments.words));
///
/// The variables must outlive the object.
class Flags {
 public:
  /// A list receives the values of a flag that may be repeated.
  using Variable = std::variant<bool*, std::int32_t*, std::int64_t*, std::uint64_t*, double*, std::string*,
                                std::vector<std::string>*>;

  /// --help shows the examples, each after the name of the command, and then the notes.
  explicit Flags(const Arguments& arguments, std::vector<std::string> examples = {}, std::string notes = "");

  /// `help` is one line.
  void add(const std::string& name, Variable variable, const std::string& help);

  /// Adds a flag whose value must not be empty, such as --run_dir "$FOLDER" with FOLDER unset.
  void add_path(const std::string& name, std::string* variable, const std::string& help);

  /// Adds --set key=value, which may be repeated. A word key=value that is not a flag means the same. parse() appends
  /// the assignments in their order. `keys` are the keys that a config can have: for --lr 0.1, the error suggests
  /// --set optimizer.lr=0.1.
  void add_overrides(std::vector<std::string>* overrides, const std::string& help, std::vector<std::string> keys = {});

  /// Sets the variables of the flags that are among `words`, written as --name=value, --name value, --switch or
  /// --noswitch, and returns the other words. --help (-h) prints the flags, --version the version, and both end the
  /// process with status 0. Throws ConfigError for an unknown flag, with a suggestion, and for a value that is missing
  /// or does not fit.
  std::vector<std::string> parse(const std::vector<std::string>& words) const;

 private:
  struct Flag {
    std::string name;
    Variable variable;
    std::string help;
    std::string default_text;  // empty: --help shows none
    bool may_be_empty = true;
  };

  const Flag* find(const std::string& name) const;
  // Returns true if the next word is the value.
  bool set(const WrittenFlag& written, const std::string& word, const std::string* next) const;
  std::string meant(const WrittenFlag& written, const std::string* next) const;
  [[noreturn]] void print_help() const;
  [[noreturn]] void print_completions() const;

  const std::string name_;
  const std::string purpose_;
  const std::vector<std::string> examples_;
  const std::string notes_;
  std::vector<Flag> flags_;
  std::vector<std::string>* overrides_ = nullptr;
  std::vector<std::string> keys_;
};

/// The help of the overrides of a config.
inline constexpr const char* kOverridesHelp =
    "key.path=value, overrides the config file; may be repeated; --set may be omitted";

/// Moves the first word into `value`, the value of a flag, unless the flag was given: "train config.yaml" means
/// "train --config config.yaml".
void take_positional(std::vector<std::string>& words, std::string& value);

/// Prints "NAME version X", and ends the process with status 0.
[[noreturn]] void print_version(const std::string& name);

/// Throws ConfigError for the first of the words, if any: for commands that accept only flags.
void refuse(const std::vector<std::string>& others);

}  // namespace phalanx
