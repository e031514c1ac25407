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

// The interpreter of the environment in `folder`. The file "complete" is made last: what an interrupted run left is
// made anew.
std::string make_environment(const fs::path& folder, const std::string& flag) {
  const std::string python = folder / "bin" / "python";
  if (fs::exists(folder / "complete")) return python;
  std::fprintf(stderr, "creating a Python environment with %s in %s ...\n", kTorch, folder.c_str());
  fs::remove_all(folder);
  fs::create_directories(folder.parent_path());
  const bool made = run_program({"python3", "-m", "venv", folder.string()}) == 0 &&
                    run_program({python, "-m", "pip", "install", "-q", kTorch, "numpy"}) == 0;
  if (!made) {
    fs::remove_all(folder);
    throw ConfigError(flag + ": python3 -m venv or pip install " + kTorch +
                      " failed, as printed above; name an interpreter that has PyTorch with --python");
  }
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
