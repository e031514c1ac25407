// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/results/failure_text.h"

#include <sstream>

#include "framework/base/printable.h"

namespace phalanx::regress {
namespace {

constexpr const char *kFrameTop = "┌─", *kFrameSide = "│";
constexpr std::size_t kLongest = 500;

// Removes the frame's side and the spaces at both ends.
std::string inside_of(std::string line) {
  if (line.starts_with(kFrameSide)) line.erase(0, std::string(kFrameSide).size());
  line.erase(0, line.find_first_not_of(" \t"));
  return line.erase(line.find_last_not_of(" \t\r") + 1);
}

}  // namespace

std::string reason_in(const std::string& errors) {
  std::istringstream lines(errors);
  std::string reason, last;
  bool framed = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kFrameTop)) {
      framed = true;
      reason.clear();
    } else if (framed && line.starts_with(kFrameSide)) {
      const std::string text = inside_of(line);
      framed = !text.empty();  // an empty line ends the reason
      if (framed) reason += (reason.empty() ? "" : " ") + text;
    } else if (!inside_of(line).empty()) {
      last = inside_of(line);
    }
  }
  if (reason.empty()) reason = last;
  if (reason.size() > kLongest) reason = reason.substr(0, kLongest - 3) + "...";
  return printable(reason);
}

std::vector<std::string> unmet_lines(const std::vector<history::ExpectationResult>& expectations) {
  std::vector<std::string> lines;
  for (const auto& one : expectations) {
    if (!one.met) lines.push_back(one.key + ": wanted " + one.wanted + ", got " + one.got);
  }
  return lines;
}

}  // namespace phalanx::regress
