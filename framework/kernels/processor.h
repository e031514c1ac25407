// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx::kernels {

/// The properties of a processor that decide which kernels are used.
struct Processor {
  std::string vendor;   // as cpuid spells it: "AuthenticAMD", "GenuineIntel"; empty if there is no cpuid
  std::string name;     // name of the model, for people
  std::string vectors;  // the widest vector instructions that LibTorch uses here: "AVX512", "AVX2", "DEFAULT"

  bool is_amd() const { return vendor == "AuthenticAMD"; }
};

/// Returns the processor of this process, from /proc/cpuinfo and LibTorch.
Processor this_processor();

}  // namespace phalanx::kernels
