// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/host_slots.h"

#include <algorithm>
#include <charconv>

#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr std::size_t kLongestName = 253;  // limit of DNS
constexpr int kMaxSlots = 4096;

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName && is_letter_or_digit(name.front()) &&
         std::ranges::all_of(name, [](char c) { return is_letter_or_digit(c) || c == '.' || c == '-' || c == '_'; });
}

bool is_number(const std::string& text) {
  return !text.empty() && text.front() != '0' && text.find_first_not_of("0123456789") == text.npos;
}

}  // namespace

HostSlots parse_host(const std::string& text) {
  const auto colon = std::min(text.find(':'), text.size());
  HostSlots host{.name = text.substr(0, colon)};
  bool good = is_name(host.name);
  if (colon < text.size()) {
    const std::string slots = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(slots.data(), slots.data() + slots.size(), host.slots);
    good = good && is_number(slots) && error == std::errc() && host.slots <= kMaxSlots;
  }
  if (good) return host;
  throw ConfigError("\"" + text + "\" is not a host; expected a name, or name:slots with 1 to " +
                    std::to_string(kMaxSlots) + " slots");
}

std::optional<std::int64_t> total_slots(const std::vector<HostSlots>& hosts) {
  if (std::ranges::all_of(hosts, [](const HostSlots& host) { return host.slots == 0; })) return std::nullopt;
  std::int64_t total = 0;
  for (const auto& host : hosts) total += std::max(1, host.slots);
  return total;
}

}  // namespace phalanx
