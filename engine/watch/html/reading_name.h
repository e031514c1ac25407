// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx {

/// What the name of a reading says: "recall[3]" is one of a list by the name of recall, "confusion[3][5]" one of a
/// matrix, and "loss" stands alone.
struct ReadingName {
  std::string family;               // without the numbers
  std::vector<std::int64_t> index;  // none, one, or two
};

ReadingName parse_reading_name(const std::string& name);

/// Those that stand alone, in their order.
std::vector<std::string> single_readings(const std::vector<std::string>& readings);

}  // namespace phalanx
