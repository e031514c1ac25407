// SPDX-License-Identifier: Apache-2.0
#include "framework/base/plugins.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <set>
#include <system_error>

#include "framework/base/error.h"
#include "framework/base/loaded_library.h"
#include "framework/base/plugin_check.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr int kUsage = 2;  // exit status for a wrong config

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw ConfigError({ConfigProblem{.key = "plugins", .message = path + ": " + why}});
}

std::string& loading() {
  static std::string path;
  return path;
}

// The dynamic linker lets no exception through, so an exception in an initialiser ends in std::terminate.
[[noreturn]] void end_with_reason() {
  std::string reason = "it ended the program while it was loaded";
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    reason = error.what();
  } catch (...) {
    reason = "it threw an exception of an unknown type while it was loaded";
  }
  std::fprintf(stderr, "plugins: %s: %s\n", loading().c_str(), reason.c_str());
  ::_exit(kUsage);
}

// Returns the dynamic linker's message without the path, which refuse() adds.
std::string open_error(const std::string& path) {
  std::string text = link_error();
  if (text.starts_with(path + ": ")) text.erase(0, path.size() + 2);
  return text;
}

void check_stamp(const std::string& path) {
  std::string problem;
  try {
    problem = stamp_problem(path);
  } catch (const DataError& error) {
    throw ConfigError({ConfigProblem{.key = "plugins", .message = error.what()}});
  }
  if (!problem.empty()) refuse(path, problem);
}

void load(const std::string& path) {
  check_stamp(path);
  loading() = path;
  const auto before = std::set_terminate(end_with_reason);
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::set_terminate(before);
  if (library == nullptr) {
    const std::string error = open_error(path);
    const bool lacks = error.find("undefined symbol") != error.npos;
    refuse(path, error + (lacks ? "; build it again, for this version of Phalanx" : ""));
  }
}

}  // namespace

void load_plugins(const std::vector<std::string>& paths) {
  static std::set<std::string> loaded;
  for (const auto& path : paths) {
    std::error_code error;
    const std::string file = fs::canonical(path, error);
    if (error) refuse(path, error.message() + "; relative paths start at the current folder");
    if (loaded.contains(file)) continue;
    load(file);
    loaded.insert(file);
  }
}

}  // namespace phalanx
