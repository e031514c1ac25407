#include "tools/launch/log_tail.h"

#include <algorithm>
#include <deque>
#include <fstream>

namespace phalanx {
namespace {

constexpr std::streamoff kBytesPerLine = 1024;

}  // namespace

std::vector<std::string> last_lines(const std::string& path, int count) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::streamoff size = file.tellg();
  const std::streamoff start = std::max<std::streamoff>(0, size - count * kBytesPerLine);
  file.seekg(start);
  std::deque<std::string> lines;
  std::string line;
  if (start > 0) std::getline(file, line);  // most likely the second half of one
  while (std::getline(file, line)) {
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    lines.push_back(line);
    if (lines.size() > static_cast<std::size_t>(count)) lines.pop_front();
  }
  return {lines.begin(), lines.end()};
}

}  // namespace phalanx
