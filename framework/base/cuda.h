// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// Versions with which the plug-in was built, and versions of the libraries that it runs with: 13000 for CUDA 13.0,
/// 22907 for NCCL 2.29.7. The plug-in's function "phalanx_cuda_versions" returns them.
struct CudaVersions {
  int cuda = 0, nccl = 0;                   // of the toolkit and of NCCL's header
  int libtorch_cuda = 0, running_nccl = 0;  // for which LibTorch was built; of the NCCL that is loaded
};

/// The paths of the libraries that computing on CUDA devices needs.
struct CudaPaths {
  std::string driver;    // libcuda.so.1
  std::string libtorch;  // libtorch_cuda.so
  std::string plugin;    // libphalanx_cuda.so

  /// Returns the default paths: the driver by the name under which the dynamic linker finds it, libtorch_cuda.so in the
  /// folder of the libtorch_cpu.so that this program runs with, and the plug-in in the program's folder or where
  /// Bazel has built both. PHALANX_CUDA_DRIVER, PHALANX_CUDA_LIBTORCH and PHALANX_CUDA_PLUGIN override them.
  static CudaPaths found();
};

/// Access to CUDA. The programs themselves are CPU programs and run with LibTorch with or without CUDA. All code that
/// needs CUDA's own libraries is in a plug-in, which is loaded on demand.
class Cuda {
 public:
  /// Loads the driver, libtorch_cuda.so and the plug-in, in that order, and compares their versions and the stamp of
  /// the plug-in. Starts neither the driver nor a device, so ranks may be forked afterwards. Never throws: if something
  /// cannot be loaded or does not fit, missing() says so.
  explicit Cuda(const CudaPaths& paths);

  /// Returns the instance for CudaPaths::found(), which the first call loads. That call must come before anything is
  /// computed, because LibTorch asks only once whether it has CUDA. Thread-safe.
  static const Cuda& global();

  bool loaded() const { return missing_.empty(); }

  /// Says why CUDA cannot be used and what to do about it, in one line. Empty if it can be used.
  const std::string& missing() const { return missing_; }

  /// Returns a function of the plug-in. Throws a ConfigError with missing(), or with the name of the function if the
  /// plug-in is too old to have it.
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(address_of(name));
  }

  /// Returns the number of devices that this process can use, at least one. Starts the driver: ranks may not be forked
  /// afterwards. Throws ConfigError if it has none.
  int devices() const;

 private:
  std::string problem_of(const CudaPaths& paths);
  void* address_of(const char* name) const;

  void* plugin_ = nullptr;  // never unloaded, because LibTorch refers to its registrations
  std::string missing_;
};

}  // namespace phalanx
