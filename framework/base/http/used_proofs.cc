// SPDX-License-Identifier: Apache-2.0
#include "framework/base/http/used_proofs.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace phalanx {
namespace {

// Returns all texts that may be a proof, in lower case: runs of as many hexadecimal digits as a SHA-256 has, except in
// paths of pages.
std::vector<std::string> hashes_of(std::string_view header) {
  constexpr std::size_t kDigits = 64;
  constexpr std::string_view kDigit = "0123456789abcdefABCDEF", kInPath = "/-._";
  std::vector<std::string> hashes;
  for (auto begin = header.find_first_of(kDigit); begin != header.npos;) {
    const auto end = std::min(header.find_first_not_of(kDigit, begin), header.size());
    if (end - begin == kDigits && (begin == 0 || kInPath.find(header[begin - 1]) == kInPath.npos)) {
      auto& hash = hashes.emplace_back(header.substr(begin, kDigits));
      std::ranges::transform(hash, hash.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    }
    begin = header.find_first_of(kDigit, end);
  }
  return hashes;
}

}  // namespace

bool UsedProofs::are_new(std::string_view authorization) {
  const auto now = Clock::now();
  for (; !times_.empty() && times_.front().second + memory_ < now; times_.pop_front()) {
    used_.erase(times_.front().first);
  }
  auto hashes = hashes_of(authorization);
  std::erase(hashes, opaque_);
  if (std::ranges::any_of(hashes, [&](const auto& hash) { return used_.contains(hash); })) return false;
  for (const auto& hash : hashes) {
    if (used_.insert(hash).second) times_.emplace_back(hash, now);
  }
  return true;
}

}  // namespace phalanx
