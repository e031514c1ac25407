#include "tools/bench/python.h"

#include <cstdio>
#include <filesystem>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "tools/bench/child.h"

namespace phalanx::bench {
namespace {

namespace fs = std::filesystem;

const char* const kTorch = "torch==2.13.0";

fs::path cache_folder(const std::string& flag) {
  if (const auto cache = environment("XDG_CACHE_HOME"); cache && !cache->empty()) return *cache;
  if (const auto home = environment("HOME"); home && !home->empty()) return fs::path(*home) / ".cache";
  throw ConfigError(flag + ": HOME is not set, so PyTorch cannot be installed; name an interpreter with --python");
}

// The system's Python, which finds the packages that lie beside it.
constexpr const char* kPython = R"(#!/bin/sh
export PYTHONPATH="${0%/*}/../packages${PYTHONPATH:+:$PYTHONPATH}"
exec python3 "$@"
)";

// The interpreter in `folder`, with packages of its own. Not a virtual environment: Debian's Python cannot make one
// without a package more. The file "complete" is made last: what an interrupted run left is made anew.
std::string make_environment(const fs::path& folder, const std::string& flag) {
  const fs::path python = folder / "bin" / "python", packages = folder / "packages";
  if (fs::exists(folder / "complete")) return python;
  std::fprintf(stderr, "installing %s in %s ...\n", kTorch, folder.c_str());
  fs::remove_all(folder);
  fs::create_directories(python.parent_path());
  if (run_program({"python3", "-m", "pip", "install", "-q", "--target", packages, kTorch, "numpy"}) != 0) {
    fs::remove_all(folder);
    throw ConfigError(flag + ": python3 -m pip install " + kTorch +
                      " failed, as printed above; name an interpreter that has PyTorch with --python");
  }
  write_atomically(python, kPython);
  fs::permissions(python, fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec, fs::perm_options::add);
  write_atomically(folder / "complete", "");
  return python;
}

}  // namespace

std::string python_with_torch(const std::string& wanted, const std::string& flag) {
  const std::string python =
      wanted.empty() ? make_environment(cache_folder(flag) / "phalanx" / "torch-2.13.0", flag) : wanted;
  const std::string look = "import torch.distributed as d, sys; sys.exit(not d.is_gloo_available())";
  const int status = run_program({python, "-c", look});
  if (status == 0) return python;
  const std::string what = status == 127 ? " cannot be started" : " has no PyTorch with gloo";
  throw ConfigError(flag + ": " + python + what + "; name an interpreter that has it with --python");
}

}  // namespace phalanx::bench
