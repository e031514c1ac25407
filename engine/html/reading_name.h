// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx {

/// The parts of a reading's name: "recall[3]" is an element of a list called recall, "confusion[3][5]" an element of a
/// matrix, and "loss" is a single reading.
struct ReadingName {
  std::string family;               // name without the numbers
  std::vector<std::int64_t> index;  // none, one, or two
};

ReadingName parse_reading_name(const std::string& name);

/// Returns the single readings, in their order.
std::vector<std::string> single_readings(const std::vector<std::string>& readings);

}  // namespace phalanx
