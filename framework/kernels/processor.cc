// SPDX-License-Identifier: Apache-2.0
#include "framework/kernels/processor.h"

#include <ATen/Version.h>

#include <fstream>

namespace phalanx::kernels {

Processor this_processor() {
  Processor processor{.vendor = "", .name = "", .vectors = at::get_cpu_capability()};
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {  // the first core's lines
    const auto colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("vendor_id")) processor.vendor = value;
    if (line.starts_with("model name")) processor.name = value;
  }
  return processor;
}

}  // namespace phalanx::kernels
