// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// Where the parts are that computing on CUDA devices takes.
struct CudaPaths {
  std::string driver;    // libcuda.so.1
  std::string libtorch;  // libtorch_cuda.so
  std::string plugin;    // libphalanx_cuda.so

  /// The driver where the dynamic linker finds it, LibTorch's part beside the libtorch_cpu.so that this program runs
  /// with, the plug-in beside the program or among its run files. PHALANX_CUDA_DRIVER, PHALANX_CUDA_LIBTORCH and
  /// PHALANX_CUDA_PLUGIN name others.
  static CudaPaths found();
};

/// CUDA, as far as this process has it. The programs themselves are CPU programs and run with LibTorch of either kind:
/// all that needs CUDA's own libraries is in a plug-in, which is loaded when it is asked for.
class Cuda {
 public:
  /// Loads driver, LibTorch's part and plug-in, in that order. Starts neither driver nor device, so ranks may be forked
  /// afterwards. Never throws: missing() says what there is not.
  explicit Cuda(const CudaPaths& paths);

  /// That of CudaPaths::found(), loaded by the first call. Before anything is computed: LibTorch asks once whether it
  /// has CUDA and keeps to the answer. Thread-safe.
  static const Cuda& global();

  bool loaded() const { return missing_.empty(); }

  /// Why CUDA cannot be used, and what to do; one line, empty if it can.
  const std::string& missing() const { return missing_; }

  /// A function of the plug-in. Throws ConfigError that says missing(), or which function an older plug-in lacks.
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(address_of(name));
  }

  /// How many devices this process can use, at least one. Starts the driver: ranks may not be forked afterwards. Throws
  /// ConfigError.
  int devices() const;

 private:
  void load(const CudaPaths& paths);
  void* address_of(const char* name) const;

  void* plugin_ = nullptr;  // never unloaded: LibTorch keeps what it has registered
  std::string missing_;
};

}  // namespace phalanx
