// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/site/log_excerpt.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

#include "framework/base/printable.h"

namespace phalanx::site {
namespace {

constexpr std::streamoff kMaxRead = 1 << 20;

// Parts of the sentences with which ranks report a stall (framework/observe/hang).
constexpr std::array<std::string_view, 6> kStallWords{" has waited ",
                                                      " have waited ",
                                                      "all ranks wait for each other",
                                                      "all ranks have been in ",
                                                      "no rank waits for another: ",
                                                      " continues after "};

std::string read_end(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kMaxRead));
  std::string text(static_cast<std::size_t>(std::min(size, kMaxRead)), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

// Returns the lines, without what a carriage return has overwritten on a terminal.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    while (!line.empty() && line.back() == '\r') line.pop_back();
    if (const auto last = line.rfind('\r'); last != std::string::npos) line.erase(0, last + 1);
    lines.push_back(std::move(line));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

LogExcerpt read_excerpt(const std::string& path) {
  const auto lines = lines_of(read_end(path));
  LogExcerpt excerpt;
  for (const auto& line : lines) {
    const auto is_in_line = [&line](std::string_view words) { return line.find(words) != std::string::npos; };
    if (std::ranges::any_of(kStallWords, is_in_line)) excerpt.stalls.push_back(printable(line));
  }
  if (excerpt.stalls.size() > kMaxStalls) {
    excerpt.stalls.erase(excerpt.stalls.begin(), excerpt.stalls.end() - kMaxStalls);
  }
  const std::size_t first = lines.size() - std::min(lines.size(), kTailLines);
  std::string tail;
  for (std::size_t i = first; i < lines.size(); ++i) tail += lines[i] + "\n";
  excerpt.whole = first == 0 && tail.size() <= kTailBytes;
  if (tail.size() > kTailBytes) tail.erase(0, tail.size() - kTailBytes);
  excerpt.tail = printable(tail);
  return excerpt;
}

}  // namespace phalanx::site
