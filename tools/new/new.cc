// SPDX-License-Identifier: Apache-2.0
// Creates a model: new model NAME

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/loaded_library.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "models/model.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/new/templates.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

struct NewFile {
  fs::path path;
  std::string text;
  bool program = false;
};

// Returns the checkout that contains the current folder.
fs::path find_root() {
  for (fs::path folder = fs::current_path();; folder = folder.parent_path()) {
    if (fs::exists(folder / "WORKSPACE") && fs::exists(folder / "models/zoo")) return folder;
    if (folder == folder.root_path()) {
      throw ConfigError(fs::current_path().string() + " is not in a checkout of Phalanx; run new in one");
    }
  }
}

// Returns true if C++ reserves the name.
bool is_keyword(const std::string& name) {
  static const std::set<std::string> kKeywords{
      "alignas",     "alignof",  "and",        "and_eq",    "asm",       "auto",         "bitand",
      "bitor",       "bool",     "break",      "case",      "catch",     "char",         "char16_t",
      "char32_t",    "char8_t",  "class",      "co_await",  "co_return", "co_yield",     "compl",
      "concept",     "const",    "const_cast", "consteval", "constexpr", "constinit",    "continue",
      "decltype",    "default",  "delete",     "do",        "double",    "dynamic_cast", "else",
      "enum",        "explicit", "export",     "extern",    "false",     "float",        "for",
      "friend",      "goto",     "if",         "inline",    "int",       "long",         "mutable",
      "namespace",   "new",      "noexcept",   "not",       "not_eq",    "nullptr",      "operator",
      "or",          "or_eq",    "private",    "protected", "public",    "register",     "reinterpret_cast",
      "requires",    "return",   "short",      "signed",    "sizeof",    "static",       "static_assert",
      "static_cast", "struct",   "switch",     "template",  "this",      "thread_local", "throw",
      "true",        "try",      "typedef",    "typeid",    "typename",  "union",        "unsigned",
      "using",       "virtual",  "void",       "volatile",  "wchar_t",   "while",        "xor",
      "xor_eq"};
  return kKeywords.contains(name);
}

void check_name(const std::string& name) {
  const auto good = [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '_'; };
  if (name.empty() || !std::islower(static_cast<unsigned char>(name[0])) || !std::ranges::all_of(name, good)) {
    throw ConfigError("\"" + name +
                      "\": a model's name has lower-case letters, digits and _, and begins with a letter");
  }
  if (is_keyword(name)) throw ConfigError("\"" + name + "\" is a keyword of C++, and cannot be a model's name");
  const auto names = Models::global().names();
  if (std::ranges::count(names, name) > 0) throw ConfigError("a model \"" + name + "\" exists already");
}

// Returns "TinyNet" for "tiny_net".
std::string class_name(const std::string& name) {
  std::string result;
  bool upper = true;
  for (const char c : name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    result += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return result;
}

std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>>& words) {
  for (const auto& [from, to] : words) {
    for (auto at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  }
  return text;
}

// Writes all of the files, or none if one exists.
void write(const std::vector<NewFile>& files) {
  for (const auto& file : files) {
    if (fs::exists(file.path)) throw ConfigError(file.path.string() + " exists; nothing was written");
  }
  for (const auto& file : files) {
    write_atomically(file.path, file.text);
    if (file.program) fs::permissions(file.path, fs::perms::owner_exec, fs::perm_options::add);
    std::printf("wrote %s\n", file.path.c_str());
  }
}

void write_plugin(const std::string& name, const std::string& model, const std::string& config,
                  const std::string& plugin) {
  const std::string libtorch = folder_of_loaded("libtorch_cpu.so");
  const std::string script =
      replaced(kBuildScript,
               {{"tiny", name}, {"@PHALANX@", find_root()}, {"@LIBTORCH@", fs::canonical(libtorch).parent_path()}});
  const fs::path folder = fs::absolute(plugin).lexically_normal();
  fs::create_directories(folder);
  const std::string line = "name: " + name + "\n";
  const std::string with_plugin = replaced(config, {{line, line + "plugins: [lib" + name + ".so]\n"}});
  write({{folder / (name + ".cc"), model},
         {folder / (name + ".yaml"), with_plugin},
         {folder / "build.sh", script, true}});
  std::printf("\nBuild it with %s/build.sh; then, in that folder, train --config %s.yaml\n", folder.c_str(),
              name.c_str());
}

void write_in_zoo(const std::string& name, const std::string& model, const std::string& test,
                  const std::string& config) {
  const fs::path root = find_root();
  write({{root / "models/zoo" / (name + ".cc"), model},
         {root / "models/zoo" / (name + "_test.cc"), test},
         {root / "configs" / (name + ".yaml"), config}});
  std::printf(
      "\nTest it with ./bazelw test //models/zoo:%s_test //tests/zoo:zoo_test\n"
      "Train it with ./bazelw run //tools:train -- --config configs/%s.yaml\n",
      name.c_str(), name.c_str());
}

int run(const Arguments& arguments) {
  std::string plugin;
  Flags flags(arguments, {"model NAME", "model NAME --plugin FOLDER"});
  flags.add("plugin", &plugin, "folder for a model outside of this repository, as a shared library");
  const auto words = flags.parse(arguments.words);
  if (words.size() != 2 || words[0] != "model")
    throw ConfigError("expected " + arguments.name + " model NAME (see --help)");
  const std::string& name = words[1];
  check_name(name);
  const std::vector<std::pair<std::string, std::string>> names = {{"tiny", name}, {"Tiny", class_name(name)}};
  const std::string model = replaced(kModel, names), config = replaced(kModelConfig, names);
  if (plugin.empty()) {
    write_in_zoo(name, model, replaced(kModelTest, names), config);
  } else {
    write_plugin(name, model, config, plugin);
  }
  return kDone;
}

const bool new_registered = register_command(
    {"new", "starts a new model: a file with a network of two layers, a config that trains it, and a test",
     CommandGroup::kData, run});

}  // namespace
}  // namespace phalanx
