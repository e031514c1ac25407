// SPDX-License-Identifier: Apache-2.0
// Lists what a config can name: list models; list models gpt

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/config/describe.h"
#include "framework/base/config/keys.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/plugins.h"
#include "framework/base/text.h"
#include "framework/kernels/kernels.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/list/kinds.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void refuse_name(const std::string& message, const std::string& name,
                              const std::vector<std::string>& names) {
  throw ConfigError({ConfigProblem{.message = message, .suggestion = nearest(name, names)}});
}

const Kind& find_kind(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& kind : kinds()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  refuse_name("\"" + name + "\" is not one of the kinds: " + join(names, ", "), name, names);
}

void check_name(const Kind& kind, const std::string& name) {
  const auto names = kind.all->names();
  if (std::ranges::count(names, name) > 0) return;
  refuse_name("there is no \"" + name + "\" among the " + kind.name, name, names);
}

config::Visit fields_of_entry(const Kind& kind, const std::string& name) {
  return [&kind, name](config::Visitor& visitor) { kind.all->visit_defaults(name, visitor); };
}

Json entry_of(const Kind& kind, const std::string& name) {
  Json entry = {{"name", name}, {"help", kind.all->help(name)}, {"fields", fields_of(fields_of_entry(kind, name))}};
  if (kind.supports) entry["supports"] = kind.supports(name);
  return entry;
}

Json entries_of(const Kind& kind) {
  Json entries = Json::array();
  for (const auto& name : kind.all->names()) entries.push_back(entry_of(kind, name));
  return entries;
}

void write_json(const Json& json, const std::string& file) {
  const std::string text = json.dump(2) + "\n";
  if (file == "-") {
    std::fputs(text.c_str(), stdout);
  } else {
    write_atomically(file, text);
  }
}

// Prints two columns.
void print(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::size_t width = 0;
  for (const auto& [name, help] : rows) width = std::max(width, name.size());
  for (const auto& [name, help] : rows) {
    std::printf("%-*s  %s\n", static_cast<int>(width), name.c_str(), help.c_str());
  }
}

// Prints everything of a kind, or writes it to the file `json`, unless that is empty.
void list_kinds(const std::string& json) {
  if (!json.empty()) {
    Json all;
    for (const auto& kind : kinds()) all[kind.name] = entries_of(kind);
    return write_json(all, json);
  }
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& kind : kinds()) {
    rows.emplace_back(kind.name, std::to_string(kind.all->names().size()) + ": " + kind.what);
  }
  print(rows);
}

void list_names(const Kind& kind, const std::string& json) {
  if (!json.empty()) return write_json(entries_of(kind), json);
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& name : kind.all->names()) rows.emplace_back(name, kind.all->help(name));
  print(rows);
}

void list_fields(const Kind& kind, const std::string& name, const std::string& json) {
  check_name(kind, name);
  if (!json.empty()) return write_json(entry_of(kind, name), json);
  std::printf("%s: %s\n", name.c_str(), kind.all->help(name).c_str());
  const auto supported = kind.supports ? kind.supports(name) : std::vector<std::string>();
  if (!supported.empty()) std::printf("It supports %s.\n", join(supported, ", ").c_str());
  if (config::keys_of(*kind.all, name).empty()) {
    std::puts("It has no fields.");
  } else {
    std::fputs(config::describe_from(fields_of_entry(kind, name)).c_str(), stdout);
  }
}

// Prints what `kernels: auto` and `kernels: libtorch` select on this machine's processor.
void list_kernels(const std::string& json) {
  const auto processor = kernels::this_processor();
  const std::vector<std::string> choices{kernels::kAuto, kernels::kLibTorch};
  Json all = Json::object();
  for (const auto& choice : choices) {
    if (json.empty())
      std::printf("kernels: %s, on %s with %s\n", choice.c_str(), processor.name.c_str(), processor.vectors.c_str());
    std::vector<std::pair<std::string, std::string>> rows;
    for (const auto& row : kernels::make_plan(choice, processor).table()) {
      all[choice].push_back(
          {{"operators", row.operators}, {"tensors", row.tensors}, {"code", row.code}, {"reason", row.reason}});
      rows.emplace_back("  " + row.operators, row.code + " for " + row.tensors + ": " + row.reason);
    }
    if (json.empty()) print(rows);
  }
  if (!json.empty()) write_json(all, json);
}

int run(const Arguments& arguments) {
  std::string json, plugin_paths;
  Flags flags(arguments, {"", "models", "models gpt", "models --json models.json", "kernels"});
  flags.add("json", &json,
            "file to write all of it to, with each field's type, default and limits; - for standard output");
  flags.add("plugins", &plugin_paths, "shared libraries of your own to load first, separated by commas");
  const auto words = flags.parse(arguments.words);
  std::vector<std::string> plugins;
  std::istringstream named(plugin_paths);
  for (std::string path; std::getline(named, path, ',');) plugins.push_back(path);
  load_plugins(plugins);
  if (words.size() > 2) refuse({words[2]});
  if (words.empty()) {
    list_kinds(json);
  } else if (words[0] == "kernels") {
    if (words.size() > 1) refuse({words[1]});
    list_kernels(json);
  } else if (words.size() == 1) {
    list_names(find_kind(words[0]), json);
  } else {
    list_fields(find_kind(words[0]), words[1], json);
  }
  return kDone;
}

const bool list_registered =
    register_command({"list", "lists everything that a config can name, with its fields", CommandGroup::kData, run});

}  // namespace
}  // namespace phalanx
