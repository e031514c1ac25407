// SPDX-License-Identifier: Apache-2.0
#include "tools/top/frame.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cinttypes>
#include <cmath>
#include <cstddef>
#include <functional>
#include <utility>

#include "framework/base/text.h"
#include "framework/observe/metrics/styled_text.h"
#include "framework/observe/times/step_clock.h"
#include "framework/observe/times/step_times.h"
#include "framework/observe/times/time_table.h"

namespace phalanx {
namespace {

constexpr const char* kRed = "31";
constexpr std::array<char, kPhases> kLetters{'d', 'f', 'b', 'c', 'u', 'h'};  // of phases, in the bar of a rank
constexpr std::array<const char*, kPhases> kHeads{"data", "forward", "backward", "comm.", "update", "hooks"};
constexpr int kRankColumns = 6, kTimeColumns = 10, kLeastBar = 10, kMaxBar = 40;
constexpr std::size_t kLeastRanks = 3;  // that are shown on a terminal that is too low for all lines

// Lines that are not wider than the screen.
class Lines {
 public:
  explicit Lines(const Screen& screen) : screen_(screen) {}

  // Adds a line of items, each followed by two spaces, and leaves out those that do not fit.
  void add_items(const std::vector<std::string>& items, const char* style = StyledText::kPlain) {
    StyledText line(screen_.colors);
    for (const auto& item : items) {
      const std::string text = (line.columns() == 0 ? "" : "  ") + item;
      if (item.empty() || line.columns() + static_cast<int>(columns_of(text)) > screen_.columns) continue;
      line.add(text, line.columns() == 0 ? style : StyledText::kPlain);
    }
    if (line.columns() == 0 && !items.empty()) return add_text(items.front(), style);
    lines_.push_back(line.bytes());
  }

  // Adds a text, broken at spaces into lines.
  void add_text(const std::string& text, const char* style = StyledText::kPlain) {
    std::string line;
    const auto push = [&] {
      if (!line.empty()) lines_.push_back(StyledText(screen_.colors).add(line, style).bytes());
      line.clear();
    };
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find(' ', begin), text.size());
      const std::string word = text.substr(begin, end - begin);
      if (!line.empty() && columns_of(line) + 1 + columns_of(word) > width()) push();
      line += (line.empty() ? "" : " ") + word;
      while (columns_of(line) > width()) {  // a word that is wider than the screen
        const std::string rest(last_columns(line, columns_of(line) - width()));
        line.resize(line.size() - rest.size());
        push();
        line = rest;
      }
      begin = end + 1;
    }
    push();
  }

  void add(const StyledText& line) { lines_.push_back(line.bytes()); }
  void add_empty() { lines_.emplace_back(); }
  std::size_t size() const { return lines_.size(); }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::size_t width() const { return static_cast<std::size_t>(std::max(1, screen_.columns)); }

  const Screen& screen_;
  std::vector<std::string> lines_;
};

std::string clock_time(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::max(0.0, seconds));
  if (whole < 3600) return format_text("%" PRId64 ":%02" PRId64, whole / 60, whole % 60);
  return format_text("%" PRId64 ":%02" PRId64 ":%02" PRId64, whole / 3600, whole / 60 % 60, whole % 60);
}

std::string bar_of(double share, int cells) {
  const int full = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * cells));
  std::string bar;
  for (int i = 0; i < cells; ++i) bar += i < full ? "█" : "░";
  return bar;
}

std::string phase_of(const JobState& state, double now) {
  if (state.phase == JobPhase::kEnded) return "has ended";
  const double age = state.measured_at > 0 ? std::max(0.0, now - state.measured_at) : 0;
  const std::string measured = format_text("measured %.0f s ago", age);
  return state.phase == JobPhase::kDied ? "has died, " + measured : measured;
}

void add_head(const JobState& state, double now, Lines& lines) {
  lines.add_items({state.name, format_text("%d %s", state.ranks, state.ranks == 1 ? "rank" : "ranks"),
                   phase_of(state, now), state.source},
                  StyledText::kBold);
  std::vector<std::string> progress;
  if (state.planned_steps > 0) {
    const double share = static_cast<double>(state.step) / static_cast<double>(state.planned_steps);
    progress = {format_text("step %" PRId64 "/%" PRId64, state.step, state.planned_steps),
                format_text("%3.0f %%", 100 * share), bar_of(share, 20)};
    if (state.step > 0 && state.phase == JobPhase::kTraining && share < 1) {
      progress.push_back(clock_time(state.seconds / share - state.seconds) + " left");
    }
  } else {
    progress = {format_text("step %" PRId64, state.step)};
  }
  progress.insert(progress.begin() + 1, format_text("epoch %" PRId64, state.epoch + 1));
  progress.push_back(clock_time(state.seconds) + " so far");
  lines.add_items(progress);
  std::vector<std::string> metrics{format_text("%.0f samples/s", state.samples_per_second)};
  for (const auto& [name, value] : state.metrics) metrics.push_back(name + " " + format_text("%.4g", value));
  if (state.learning_rate) metrics.push_back(format_text("learning rate %.4g", *state.learning_rate));
  lines.add_items(metrics);
  for (const auto& note : state.notes) lines.add_text(note, kRed);
}

struct RankRow {
  std::size_t rank;
  double own_work, whole;
};

std::vector<RankRow> rows_of(const StepTimes& times) {
  std::vector<RankRow> rows;
  for (std::size_t rank = 0; rank < times.ranks.size(); ++rank) {
    const StepTimes one{.steps = times.steps, .ranks = {times.ranks[rank]}};
    rows.push_back({rank, one.own_work().mean, one.whole().mean});
  }
  return rows;
}

// Returns a bar of the phases of a rank, whose letters are as long as their share of the longest step.
std::string phases_bar(const std::array<double, kPhases>& phases, double longest, int cells) {
  std::string bar;
  double until = 0;
  for (std::size_t i = 0; i < kPhases && longest > 0; ++i) {
    until += phases[i];
    const auto end = static_cast<std::size_t>(std::lround(until / longest * cells));
    if (end > bar.size()) bar.append(end - bar.size(), kLetters[i]);
  }
  bar.resize(static_cast<std::size_t>(cells), ' ');
  return bar;
}

// The columns of the table of ranks that fit on a screen.
struct Columns {
  int phases, bar;

  explicit Columns(int columns) {
    const int room = columns - kRankColumns - kTimeColumns;
    phases = std::clamp((room - kLeastBar - 2) / kTimeColumns, 0, kPhases);
    const int left = room - phases * kTimeColumns - 2;
    bar = left < kLeastBar ? 0 : std::min(left, kMaxBar);
  }
};

void add_ranks(const JobState& state, const Screen& screen, Lines& lines) {
  const Columns columns(screen.columns);
  auto rows = rows_of(state.times);
  const double longest = std::ranges::max_element(rows, {}, &RankRow::whole)->whole;
  const std::size_t used = lines.size() + 1;
  std::size_t shown = rows.size();
  if (screen.rows > 0 && used + rows.size() > static_cast<std::size_t>(screen.rows)) {
    const std::size_t rows_left = static_cast<std::size_t>(screen.rows) > used ? screen.rows - used : 0;
    shown = std::min(rows.size(), std::max(kLeastRanks, rows_left) - 1);  // one line for the others
    std::ranges::stable_sort(rows, std::greater(), &RankRow::own_work);
  }
  std::string head = format_text("%-*s%*s", kRankColumns, "rank", kTimeColumns, "own work");
  for (int i = 0; i < columns.phases; ++i)
    head += format_text("%*s", kTimeColumns, kHeads[static_cast<std::size_t>(i)]);
  lines.add(StyledText(screen.colors).add(head.substr(0, static_cast<std::size_t>(screen.columns)), StyledText::kSoft));
  const RankSpread work = state.times.own_work();
  const bool has_straggler = work.most > 1.1 * work.least;
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [rank, own_work, whole] = rows[i];
    const auto& phases = state.times.ranks[rank];
    std::string row = format_text("%-*zu%*s", kRankColumns, rank, kTimeColumns, format_duration(own_work).c_str());
    for (int j = 0; j < columns.phases; ++j) {
      row += format_text("%*s", kTimeColumns, format_duration(phases[static_cast<std::size_t>(j)]).c_str());
    }
    if (columns.bar > 0) row += "  " + phases_bar(phases, longest, columns.bar);
    const bool slowest = has_straggler && static_cast<int>(rank) == work.most_rank;
    lines.add(StyledText(screen.colors)
                  .add(row.substr(0, static_cast<std::size_t>(screen.columns)), slowest ? kRed : StyledText::kPlain));
  }
  if (shown == rows.size()) return;
  lines.add_text(
      format_text("and %zu more, with %s to %s of own work", rows.size() - shown,
                  format_duration(rows.back().own_work).c_str(), format_duration(rows[shown].own_work).c_str()),
      StyledText::kSoft);
}

}  // namespace

std::vector<std::string> draw_frame(const JobState& state, const Screen& screen, double now) {
  Lines lines(screen);
  add_head(state, now, lines);
  if (!state.times.ranks.empty()) {
    std::string straggler = state.times.straggler();
    straggler[0] = static_cast<char>(std::toupper(straggler[0]));
    lines.add_text(straggler + ".");
    lines.add_empty();
    add_ranks(state, screen, lines);
  }
  auto all = lines.take();
  if (screen.rows > 0 && all.size() > static_cast<std::size_t>(screen.rows)) {
    all.resize(static_cast<std::size_t>(screen.rows));
  }
  return all;
}

}  // namespace phalanx
