// SPDX-License-Identifier: Apache-2.0
#include "framework/kernels/mkl_check.h"

#include <dlfcn.h>

#include <atomic>

namespace phalanx::kernels {
namespace {

std::atomic<bool> asked{false};
std::atomic<bool> as_on_intel{false};

}  // namespace

bool run_mkl_as_on_intel() {
  if (asked) return as_on_intel;
  as_on_intel = true;
  return true;
}

bool mkl_has_asked() { return asked; }

}  // namespace phalanx::kernels

// MKL calls this instead of its function of the same name, because the linker finds a program's symbols before the
// symbols of its libraries.
extern "C" __attribute__((visibility("default"))) int mkl_serv_intel_cpu_true() {
  using Function = int();
  phalanx::kernels::asked = true;
  if (phalanx::kernels::as_on_intel) return 1;
  auto* const own = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, "mkl_serv_intel_cpu_true"));
  return own != nullptr ? own() : 0;
}
