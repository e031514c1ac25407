// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/metrics/progress.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <vector>

#include "framework/base/environment.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

constexpr auto kTerminalInterval = std::chrono::milliseconds(100);
constexpr auto kPlainInterval = std::chrono::seconds(5);
constexpr int kMinCells = 6, kMaxCells = 30;  // cells of the bar
constexpr int kPlainColumns = 160;            // of a line if there is no terminal
constexpr int kUnknownColumns = 80;           // of a terminal that does not report its width
constexpr std::size_t kMaxReadings = 6;       // next to a bar
constexpr std::size_t kEssentialMetrics = 2;  // metrics of a result that are more important than other items

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "--:--";
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 3600) return format_text("%" PRId64 ":%02" PRId64, whole / 60, whole % 60);
  return format_text("%" PRId64 ":%02" PRId64 ":%02" PRId64, whole / 3600, whole / 60 % 60, whole % 60);
}

std::string epoch_words(const MetricsRecord& record, std::int64_t epochs) {
  return format_text("epoch %" PRId64 "/%" PRId64, record.epoch + 1, epochs);
}

}  // namespace

bool wants_colors() {
  return environment("NO_COLOR").value_or("").empty() && environment("TERM").value_or("dumb") != "dumb";
}

Progress::Progress(Console& console, bool terminal, Total total, bool colors)
    : console_(console), total_(total), terminal_(terminal), colors_(colors) {}

Progress::~Progress() {
  if (drawn_columns_ > 0) console_.write(clearing());
}

int Progress::width() const {
  if (!terminal_) return kPlainColumns;
  const int columns = console_.columns();
  return columns > 0 ? columns : kUnknownColumns;
}

void Progress::update(const MetricsRecord& train) {
  const auto now = Clock::now();
  if (now - last_ < (terminal_ ? Clock::duration(kTerminalInterval) : Clock::duration(kPlainInterval))) return;
  // A plain line cannot be redrawn, so it waits for metrics, but not so long that training seems to hang.
  if (!terminal_ && train.metrics.empty() && std::chrono::duration<double>(train.seconds) < kPlainInterval) return;
  last_ = now;
  const StyledText drawn = line(train);
  if (!terminal_) return console_.write(drawn.bytes() + "\n");
  if (console_.draw(clearing() + drawn.bytes())) drawn_columns_ = drawn.columns();
}

void Progress::result(const MetricsRecord& test) {
  const int width = this->width();
  const auto fits = [&](std::size_t count, ResultItems items) {
    return result_line(test, count, items).columns() <= width;
  };
  // Selects, among all variants that fit, the one with the most metrics, up to kEssentialMetrics, and then the one
  // with the most other items.
  std::size_t count = std::min<std::size_t>(test.metrics.size(), 1);
  ResultItems items{};
  for (std::size_t sure = count; sure <= std::min(test.metrics.size(), kEssentialMetrics); ++sure) {
    for (const ResultItems& wanted :
         {ResultItems{}, ResultItems{.split = true}, ResultItems{.split = true, .more = true},
          ResultItems{.split = true, .more = true, .step = true},
          ResultItems{.split = true, .more = true, .step = true, .epoch = true},
          ResultItems{.split = true, .more = true, .step = true, .epoch = true, .time = true}}) {
      if (sure > 1 && !wanted.split) continue;  // the split is more important than a second metric
      if (!fits(sure, wanted)) break;
      count = sure;
      items = wanted;
    }
  }
  while (count < test.metrics.size() && fits(count + 1, items)) ++count;
  ResultItems all = items;
  all.rate = test.samples_per_second > 0;
  if (fits(count, all)) items = all;
  console_.write(clearing() + result_line(test, count, items).bytes() + "\n");
  drawn_columns_ = 0;
}

StyledText Progress::result_line(const MetricsRecord& test, std::size_t count, ResultItems items) const {
  StyledText shown = text();
  if (items.epoch) shown.add(epoch_words(test, total_.epochs) + "  ", StyledText::kSoft);
  if (items.step) shown.add(format_text("step %" PRId64 "  ", test.step));
  if (items.split) shown.add(test.split, test.split == "train" ? StyledText::kCyan : StyledText::kGreen);
  if (items.split && !test.version.empty()) shown.add(" (" + test.version + ")", StyledText::kSoft);
  shown.add(metrics(test.metrics, count));
  const std::size_t more = test.metrics.size() - count;
  if (more > 0 && items.more) shown.add(format_text("  %zu more", more), StyledText::kSoft);
  if (items.rate) shown.add(format_text("  %.0f samples/s", test.samples_per_second), StyledText::kSoft);
  return items.time ? shown.add("  " + format_seconds(test.seconds), StyledText::kSoft) : shown;
}

StyledText Progress::metrics(const Metrics& metrics, std::size_t count) const {
  StyledText shown = text();
  for (std::size_t i = 0; i < std::min(count, metrics.size()); ++i) {
    const auto& [name, value] = metrics[i];
    shown.add("  " + name + " ", StyledText::kSoft)
        .add(name == "accuracy" ? format_text("%.2f %%", 100 * value) : format_text("%.4f", value), StyledText::kBold);
  }
  return shown;
}

// Returns a bar such as "▕███▌   ▏", with eighths of a cell.
StyledText Progress::bar(double share, int cells) const {
  static const char* const kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::clamp(share, 0.0, 1.0) * cells * 8);
  std::string filled;
  for (int i = 0; i < eighths / 8; ++i) filled += "█";
  filled += kEighths[eighths % 8];
  const int drawn = eighths / 8 + (eighths % 8 != 0);
  return text()
      .add("▕", StyledText::kSoft)
      .add(filled, share < 1 ? StyledText::kCyan : StyledText::kGreen)
      .add(std::string(static_cast<std::size_t>(cells - drawn), ' '))
      .add("▏", StyledText::kSoft);
}

StyledText Progress::line(const MetricsRecord& train) const {
  const StyledText epoch = text().add(epoch_words(train, total_.epochs), StyledText::kSoft);
  // One column stays free, because after the last column the cursor would move to the next line.
  return line_with_bar(train, epoch, terminal_ ? width() - 1 : 0);
}

StyledText Progress::line_with_bar(const MetricsRecord& train, const StyledText& epoch, int width) const {
  const std::int64_t planned = train.planned_steps > 0 ? train.planned_steps : total_.steps;
  const double left = train.step > 0 ? train.seconds / train.step * (planned - train.step) : NAN;
  // The step is padded to the width of the total, so that other items do not move.
  const std::string total = std::to_string(planned);
  const int digits = terminal_ ? static_cast<int>(total.size()) : 0;
  const std::string steps = format_text("%*" PRId64, digits, train.step) + "/" + total;
  const std::string rate = train.samples_per_second > 0 ? format_text("  %.0f", train.samples_per_second) : "";
  const auto tail = [&](const char* word, std::size_t count, const char* unit, bool with_eta) {
    StyledText shown = text();
    shown.add(word + steps).add(metrics(train.metrics, count));
    if (*unit != '\0' && !rate.empty()) shown.add(rate + unit);
    return with_eta ? shown.add("  ETA ", StyledText::kSoft).add(format_seconds(left)) : shown;
  };
  if (!terminal_) return text().add(epoch).add("  ").add(tail("step ", kMaxReadings, " samples/s", true));
  const std::size_t all = std::min(train.metrics.size(), kMaxReadings), some = std::min<std::size_t>(all, 2);
  const double share = planned > 0 ? static_cast<double>(train.step) / static_cast<double>(planned) : 0;
  for (const auto& shown :
       {tail("step ", all, " samples/s", true), tail("", all, "/s", true), tail("", all, "", true),
        tail("step ", some, " samples/s", true), tail("", some, "/s", true), tail("", some, "", true),
        tail("", 1, "", true), tail("", 1, "", false), tail("", 0, "", false)}) {
    const int cells = width - epoch.columns() - shown.columns() - 4;
    if (cells >= kMinCells) {
      return text().add(epoch).add(" ").add(bar(share, std::min(cells, kMaxCells))).add(" ").add(shown);
    }
  }
  const std::string position = format_text("%" PRId64 "/", train.step) + total;
  for (const std::string& bare : {epoch_words(train, total_.epochs) + "  " + position, position}) {
    if (static_cast<int>(bare.size()) <= width) return text().add(bare);
  }
  return text();  // part of a number would be a wrong number
}

// Returns the control sequence that clears the line. A terminal that has become narrower has wrapped it into several
// rows.
std::string Progress::clearing() const {
  if (!terminal_) return {};
  const int rows = drawn_columns_ > 0 ? (drawn_columns_ - 1) / std::max(1, width()) : 0;
  return (rows > 0 ? format_text("\033[%dA\r\033[J", rows) : "") + "\r\033[K";
}

}  // namespace phalanx
