// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/tar_entry.h"

#include <array>
#include <cstdio>
#include <numeric>
#include <stdexcept>

namespace phalanx {

std::string tar_entry(const std::string& name, const std::string& content) {
  constexpr std::size_t kBlock = 512, kLongest = 100;
  if (name.size() > kLongest)
    throw std::invalid_argument("a name in a tar archive has at most 100 characters: " + name);
  constexpr std::size_t kMaxBytes = (std::size_t{1} << 33) - 1;  // 11 octal digits
  if (content.size() > kMaxBytes) throw std::invalid_argument(name + " is larger than 8 GiB, too large for ustar");
  std::string entry(kBlock, '\0');
  const auto put = [&entry](std::size_t place, const std::string& text) { entry.replace(place, text.size(), text); };
  std::array<char, 24> digits{};
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  std::snprintf(digits.data(), digits.size(), "%011zo", content.size());
  put(124, digits.data());
  put(136, "00000000000");  // no time, so that equal content gives equal archives
  put(148, "        ");
  put(156, "0");
  put(257, std::string("ustar\0"
                       "00",
                       8));
  const auto sum = std::accumulate(entry.begin(), entry.end(), 0U,
                                   [](unsigned total, char byte) { return total + static_cast<unsigned char>(byte); });
  std::snprintf(digits.data(), digits.size(), "%06o", sum);
  put(148, std::string(digits.data()) + '\0');
  entry += content;
  entry.resize((entry.size() + kBlock - 1) / kBlock * kBlock, '\0');
  return entry;
}

std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace phalanx
