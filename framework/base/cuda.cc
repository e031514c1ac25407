// SPDX-License-Identifier: Apache-2.0
#include "framework/base/cuda.h"

#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/loaded_library.h"
#include "framework/base/log.h"
#include "framework/base/plugin_check.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlugin = "libphalanx_cuda.so";
constexpr const char* kInstead = "; or use device: cpu";

// Looks in the program's folder, among the plug-ins of libphalanx.so, and at its place in the folder bin in which Bazel
// has built the program.
std::string find_plugin() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path neighbour = program.parent_path() / kPlugin;
  for (const auto& path : {neighbour, fs::path(plugin_folder()) / kPlugin}) {
    if (fs::exists(path, ignored)) return path;
  }
  for (fs::path folder = program.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    const fs::path built = folder / "framework/backends/nccl" / kPlugin;
    if (folder.filename() == "bin" && fs::exists(built, ignored)) return built;
  }
  return neighbour;
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

template <class Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

std::string nccl_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

std::string no_plugin(const std::string& why) {
  return std::string("the plug-in ") + kPlugin + " of this program is missing (" + why + "); build with --config=cuda";
}

// Returns why the file of the plug-in cannot be used, or an empty string.
std::string plugin_problem(const std::string& path) {
  try {
    std::error_code ignored;
    if (!fs::exists(path, ignored)) return "";  // the dynamic linker says so
    const std::string problem = stamp_problem(path);
    return problem.empty() ? "" : std::string("the plug-in ") + kPlugin + " " + problem;
  } catch (const DataError& error) {
    return no_plugin(error.what());
  }
}

// Different major versions of CUDA are different libraries, with which a process cannot work at the same time. Any
// driver of the same major version, or of a later one, will do.
std::string version_problem(const CudaVersions& versions, void* driver) {
  const int needs = versions.libtorch_cuda;
  if (versions.cuda / 1000 != needs / 1000) {
    return std::string("the plug-in ") + kPlugin + " was built with CUDA " + version_text(versions.cuda) +
           ", but this LibTorch needs CUDA " + version_text(needs) +
           "; build it again with such a toolkit (CUDA_HOME), or run with a LibTorch for the other version";
  }
  const auto driver_version = symbol<int(int*)>(driver, "cuDriverGetVersion");
  int has = 0;
  if (driver_version == nullptr || driver_version(&has) != 0 || has / 1000 < needs / 1000) {
    return "the NVIDIA driver is too old: it supports CUDA " + version_text(has) + ", but this LibTorch needs CUDA " +
           version_text(needs) + "; update the driver";
  }
  if (versions.running_nccl / 100 < versions.nccl / 100) {
    return "NCCL " + nccl_text(versions.running_nccl) + " was loaded, but the plug-in " + kPlugin + " needs NCCL " +
           nccl_text(versions.nccl) + " or later; update it, or remove the older one from LD_LIBRARY_PATH";
  }
  return "";
}

}  // namespace

CudaPaths CudaPaths::found() {
  const std::string libtorch = folder_of_loaded("libtorch_cpu.so");
  return {.driver = environment("PHALANX_CUDA_DRIVER").value_or("libcuda.so.1"),
          .libtorch = environment("PHALANX_CUDA_LIBTORCH").value_or((fs::path(libtorch) / "libtorch_cuda.so").string()),
          .plugin = environment("PHALANX_CUDA_PLUGIN").value_or(find_plugin())};
}

Cuda::Cuda(const CudaPaths& paths) {
  missing_ = problem_of(paths);
  if (!missing_.empty()) missing_ += kInstead;
}

const Cuda& Cuda::global() {
  static const Cuda cuda(CudaPaths::found());
  return cuda;
}

// Loads the libraries. Returns the reason if that fails, and what to do about it, or an empty string.
std::string Cuda::problem_of(const CudaPaths& paths) {
  void* const driver = ::dlopen(paths.driver.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (driver == nullptr) return "there is no NVIDIA driver (" + link_error() + "); install one";
  if (::dlopen(paths.libtorch.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return "this LibTorch was built without CUDA, or CUDA's libraries are missing (" + link_error() +
           "); run with the same version built for CUDA";
  }
  if (const std::string problem = plugin_problem(paths.plugin); !problem.empty()) return problem;
  void* const plugin = ::dlopen(paths.plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) return no_plugin(link_error());
  const auto versions_of = symbol<void(CudaVersions*)>(plugin, "phalanx_cuda_versions");
  if (versions_of == nullptr) return no_plugin("it was built from other sources than this program");
  CudaVersions versions;
  versions_of(&versions);
  if (const std::string problem = version_problem(versions, driver); !problem.empty()) return problem;
  const auto pass_log = symbol<void(TakeLogLine*)>(plugin, "phalanx_cuda_pass_log_to");
  if (pass_log != nullptr) pass_log(&write_log_line);
  plugin_ = plugin;
  return "";
}

void* Cuda::address_of(const char* name) const {
  if (!loaded()) throw ConfigError("cuda: " + missing_);
  void* address = ::dlsym(plugin_, name);
  if (address != nullptr) return address;
  throw ConfigError(std::string("cuda: the plug-in ") + kPlugin + " has no " + name +
                    ", so it was built from other sources than this program; build both again");
}

int Cuda::devices() const {
  const char* why = nullptr;
  const int count = function<int(const char**)>("phalanx_cuda_device_count")(&why);
  if (count > 0) return count;
  throw ConfigError(std::string("cuda: there is no usable device (") + (why != nullptr ? why : "none visible") +
                    "); check nvidia-smi and CUDA_VISIBLE_DEVICES" + kInstead);
}

}  // namespace phalanx
