#include "engine/watch/time_table.h"

#include <array>
#include <cctype>

#include "framework/base/text.h"

namespace phalanx {
namespace {

constexpr std::array<const char*, kPhases> kTitles{"waiting for data", "forward", "backward",
                                                   "communication",    "update",  "hooks"};

std::string row(const char* title, const RankSpread& spread, double whole, bool several) {
  std::string line = format_text("  %-17s %9s %4.0f %%", title, format_duration(spread.mean).c_str(),
                                 whole > 0 ? 100 * spread.mean / whole : 0);
  if (several) {
    line += format_text("   %9s rank %-4d %9s rank %d", format_duration(spread.least).c_str(), spread.least_rank,
                        format_duration(spread.most).c_str(), spread.most_rank);
  }
  return line + "\n";
}

}  // namespace

std::string format_duration(double seconds) {
  const bool small = seconds < 1e-3;
  const double value = seconds * (small ? 1e6 : 1e3);
  return format_text("%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value, small ? "us" : "ms");
}

std::string to_time_table(const StepTimes& times) {
  const bool several = times.ranks.size() > 1;
  const RankSpread whole = times.whole();
  std::string text =
      std::string("Time of a step         mean   share") + (several ? "       least               most\n" : "\n");
  for (std::size_t i = 0; i < kPhases; ++i) {
    text += row(kTitles[i], times.phase(static_cast<Phase>(i)), whole.mean, several);
  }
  text += row("in all", whole, whole.mean, several);
  if (!several) return text;
  std::string who = times.straggler();
  who[0] = static_cast<char>(std::toupper(who[0]));
  return text + who + "\n";
}

}  // namespace phalanx
