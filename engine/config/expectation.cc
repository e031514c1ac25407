// SPDX-License-Identifier: Apache-2.0
#include "engine/config/expectation.h"

namespace phalanx {

std::vector<std::string> left_to_regress(const ExpectConfig& expect) {
  std::vector<std::string> keys;
  if (expect.throughput.of_median) keys.emplace_back("expect.throughput.of_median");
  if (!expect.same_as.config.empty()) keys.emplace_back("expect.same_as");
  if (expect.resume_at) keys.emplace_back("expect.resume_at");
  if (expect.scaling.min) keys.emplace_back("expect.scaling");
  if (expect.faults.injected > 0) keys.emplace_back("expect.faults");
  return keys;
}

}  // namespace phalanx
