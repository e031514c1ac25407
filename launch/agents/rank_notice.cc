// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/rank_notice.h"

#include "launch/agents/order_line.h"

namespace phalanx {
namespace {

constexpr std::string_view kRankEnded = "ended", kRankLost = "lost";

}  // namespace

std::string to_text(const RankNotice& notice) {
  const auto word = notice.lost ? kRankLost : kRankEnded;
  return std::string(1, '\0') + std::string(word) + " " + std::to_string(notice.number) + "\n";
}

std::optional<RankNotice> parse_rank_notice(std::string_view line) {
  for (const bool lost : {false, true}) {
    if (const auto number = small_number_after(lost ? kRankLost : kRankEnded, line)) {
      return RankNotice{.number = *number, .lost = lost};
    }
  }
  return std::nullopt;
}

}  // namespace phalanx
