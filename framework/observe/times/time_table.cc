// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/times/time_table.h"

#include <array>
#include <cctype>
#include <sstream>

#include "framework/base/text.h"

namespace phalanx {
namespace {

constexpr std::array<const char*, kPhases> kTitles{"waiting for data", "forward", "backward",
                                                   "communication",    "update",  "hooks"};

// Styles of the table: with ranks, with ranks abbreviated as "r0", without ranks.
enum class Style { kWide, kNarrow, kMeans };
constexpr std::array kHeads{"Time of a step         mean   share       least               most\n",
                            "Time of a step        mean share    least        most\n",
                            "Time of a step        mean share\n"};

std::string row(const char* title, const RankSpread& spread, double whole, Style style) {
  const double share = whole > 0 ? 100 * spread.mean / whole : 0;
  const std::string mean = format_duration(spread.mean), least = format_duration(spread.least),
                    most = format_duration(spread.most);
  if (style == Style::kWide) {
    return format_text("  %-17s %9s %4.0f %%   %9s rank %-4d %9s rank %d\n", title, mean.c_str(), share, least.c_str(),
                       spread.least_rank, most.c_str(), spread.most_rank);
  }
  const std::string means = format_text("  %-16s %8s %3.0f %%", title, mean.c_str(), share);
  if (style == Style::kMeans) return means + "\n";
  return means + format_text(" %8s r%-2d %8s r%d\n", least.c_str(), spread.least_rank, most.c_str(), spread.most_rank);
}

std::string table(const StepTimes& times, Style style) {
  const RankSpread whole = times.whole();
  std::string text = kHeads[static_cast<std::size_t>(style)];
  for (std::size_t i = 0; i < kPhases; ++i) {
    text += row(kTitles[i], times.phase(static_cast<Phase>(i)), whole.mean, style);
  }
  return text + row("total", whole, whole.mean, style);
}

bool fits(const std::string& text, int columns) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (columns > 0 && static_cast<int>(line.size()) > columns) return false;
  }
  return true;
}

// Returns the text with spaces replaced by new lines so that no line is longer than `columns`.
std::string broken(std::string text, int columns) {
  if (columns <= 0) return text;
  const auto most = static_cast<std::size_t>(columns);
  for (std::size_t begin = 0; text.size() - begin > most;) {
    const std::size_t space = text.rfind(' ', begin + most);
    if (space == text.npos || space <= begin) break;
    text[space] = '\n';
    begin = space + 1;
  }
  return text;
}

}  // namespace

std::string format_duration(double seconds) {
  const bool small = seconds < 1e-3;
  const double value = seconds * (small ? 1e6 : 1e3);
  return format_text("%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value, small ? "us" : "ms");
}

std::string to_time_table(const StepTimes& times, int columns) {
  if (times.ranks.size() < 2) return table(times, Style::kMeans);
  std::string text = table(times, Style::kWide);
  for (const Style style : {Style::kNarrow, Style::kMeans}) {
    if (!fits(text, columns)) text = table(times, style);
  }
  std::string who = times.straggler();
  who[0] = static_cast<char>(std::toupper(who[0]));
  return text + broken(who, columns) + "\n";
}

}  // namespace phalanx
