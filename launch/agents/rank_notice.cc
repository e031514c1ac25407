// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/rank_notice.h"

#include "launch/agents/order_line.h"

namespace phalanx {
namespace {

constexpr std::string_view kRankEnded = "ended", kRankLost = "lost";

}  // namespace

std::string to_text(const RankNotice& notice) {
  const std::string number = std::to_string(notice.number);
  const std::string text = notice.lost ? std::string(kRankLost) + " " + number
                                       : std::string(kRankEnded) + " " + number + " " + std::to_string(notice.status);
  return std::string(1, '\0') + text + "\n";
}

std::optional<RankNotice> parse_rank_notice(std::string_view line) {
  if (const auto number = small_number_after(kRankLost, line)) return RankNotice{.number = *number, .lost = true};
  const auto last = line.rfind(' ');
  if (last == line.npos) return std::nullopt;
  const auto number = small_number_after(kRankEnded, line.substr(0, last));
  const auto status = small_number_after("", line.substr(last));
  if (!number || !status) return std::nullopt;
  return RankNotice{.number = *number, .status = *status};
}

}  // namespace phalanx
