// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx::kernels {

/// What of a processor decides which kernels are used.
struct Processor {
  std::string vendor;   // as cpuid spells it: "AuthenticAMD", "GenuineIntel"; empty where there is no cpuid
  std::string name;     // the model's, for people
  std::string vectors;  // the widest vector instructions that LibTorch uses here: "AVX512", "AVX2", "DEFAULT"

  bool is_amd() const { return vendor == "AuthenticAMD"; }
};

/// The processor of this process, from /proc/cpuinfo and LibTorch.
Processor this_processor();

}  // namespace phalanx::kernels
