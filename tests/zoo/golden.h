// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "framework/base/files.h"

namespace phalanx::testing {

inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

/// A line of a golden file, whose columns are separated by tabs.
class GoldenLine {
 public:
  explicit GoldenLine(const std::string& line) : columns_(split(line, '\t')) {}

  // Columns are counted from 1, as the scripts that write the files do.
  const std::string& text(std::size_t column) const { return columns_.at(column - 1); }
  double value(std::size_t column) const { return std::stod(text(column)); }

  std::vector<double> values(std::size_t column) const {
    std::vector<double> numbers;
    for (const auto& number : split(text(column), ',')) numbers.push_back(std::stod(number));
    return numbers;
  }
  std::vector<std::int64_t> integers(std::size_t column) const {
    std::vector<std::int64_t> numbers;
    for (const auto& number : split(text(column), ',')) numbers.push_back(std::stoll(number));
    return numbers;
  }

 private:
  std::vector<std::string> columns_;
};

inline std::vector<GoldenLine> golden_lines(const std::string& path) {
  std::vector<GoldenLine> lines;
  for (const auto& line : split(read_file(path), '\n')) lines.emplace_back(line);
  return lines;
}

}  // namespace phalanx::testing
