// SPDX-License-Identifier: Apache-2.0
#include "framework/base/cuda.h"

#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/loaded_library.h"

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

}  // namespace

CudaPaths CudaPaths::found() {
  const std::string libtorch = folder_of_loaded("libtorch_cpu.so");
  return {.driver = environment("PHALANX_CUDA_DRIVER").value_or("libcuda.so.1"),
          .libtorch = environment("PHALANX_CUDA_LIBTORCH").value_or((fs::path(libtorch) / "libtorch_cuda.so").string()),
          .plugin = environment("PHALANX_CUDA_PLUGIN").value_or(find_plugin())};
}

Cuda::Cuda(const CudaPaths& paths) { load(paths); }

const Cuda& Cuda::global() {
  static const Cuda cuda(CudaPaths::found());
  return cuda;
}

void Cuda::load(const CudaPaths& paths) {
  void* driver = ::dlopen(paths.driver.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (driver == nullptr) {
    missing_ = "there is no NVIDIA driver (" + link_error() + "); install one" + kInstead;
    return;
  }
  if (::dlopen(paths.libtorch.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    missing_ = "this LibTorch was built without CUDA, or CUDA's libraries are missing (" + link_error() +
               "); run with the same version built for CUDA" + kInstead;
    return;
  }
  void* plugin = ::dlopen(paths.plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto runtime_version = plugin == nullptr ? nullptr : symbol<int()>(plugin, "phalanx_cuda_runtime_version");
  if (runtime_version == nullptr) {
    missing_ = std::string("the plug-in ") + kPlugin + " of this program is missing (" + link_error() +
               "); build with --config=cuda" + kInstead;
    return;
  }
  // Any driver of the same major version will do.
  const auto driver_version = symbol<int(int*)>(driver, "cuDriverGetVersion");
  int has = 0;
  const int needs = runtime_version();
  if (driver_version == nullptr || driver_version(&has) != 0 || has / 1000 < needs / 1000) {
    missing_ = "the NVIDIA driver is too old: it supports CUDA " + version_text(has) +
               ", but this LibTorch needs CUDA " + version_text(needs) + "; update the driver" + kInstead;
    return;
  }
  plugin_ = plugin;
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
