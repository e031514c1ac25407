#include "engine/watch/progress.h"

#include <sys/ioctl.h>

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
constexpr int kLeastCells = 6, kMostCells = 30;  // of the bar
constexpr int kPlainColumns = 160;               // of a line elsewhere
constexpr std::size_t kMostReadings = 6;         // beside a bar

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "--:--";
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 3600) return format_text("%" PRId64 ":%02" PRId64, whole / 60, whole % 60);
  return format_text("%" PRId64 ":%02" PRId64 ":%02" PRId64, whole / 3600, whole / 60 % 60, whole % 60);
}

int terminal_width(std::FILE* file) {
  winsize size{};
  return ::ioctl(::fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

bool wants_colors() {
  return environment("NO_COLOR").value_or("").empty() && environment("TERM").value_or("dumb") != "dumb";
}

Progress::Progress(std::FILE* file, bool terminal, Total total, bool colors)
    : file_(file), total_(total), terminal_(terminal), colors_(colors) {}

Progress::~Progress() { clear(); }

void Progress::update(const Measurement& train) {
  const auto now = Clock::now();
  if (now - last_ < (terminal_ ? Clock::duration(kTerminalInterval) : Clock::duration(kPlainInterval))) return;
  // A plain line stays, so it waits until there is something to read; but not so long that nothing seems to happen.
  if (!terminal_ && train.readings.empty() && std::chrono::duration<double>(train.seconds) < kPlainInterval) return;
  last_ = now;
  const StyledText drawn = line(train);
  if (terminal_) {
    if (drawn_columns_ == 0) std::fputs("\r\033[K", file_);
    clear();
    drawn_columns_ = drawn.columns();
  }
  std::fprintf(file_, terminal_ ? "%s" : "%s\n", drawn.bytes().c_str());
  std::fflush(file_);
}

void Progress::result(const Measurement& test) {
  clear();
  const int width = terminal_ ? terminal_width(file_) : kPlainColumns;
  StyledText shown = text();
  shown.add(format_text("epoch %" PRId64 "/%" PRId64, test.epoch + 1, total_.epochs), StyledText::kSoft)
      .add(format_text("  step %" PRId64 "  ", test.step))
      .add(test.split, StyledText::kGreen);
  const std::string rate = format_text("  %.0f samples/s", test.samples_per_second);
  const std::string time = "  " + format_seconds(test.seconds);
  // One reading in any case, and room for the time.
  std::size_t count = std::min<std::size_t>(test.readings.size(), 1);
  const int room = width - shown.columns() - static_cast<int>(time.size());
  while (count < test.readings.size() && readings(test.readings, count + 1).columns() <= room) ++count;
  shown.add(readings(test.readings, count));
  const std::string more = format_text("  %zu more", test.readings.size() - count);
  for (const auto& [wanted, words] : {std::pair(count < test.readings.size(), more), std::pair(true, rate)}) {
    const int all = shown.columns() + static_cast<int>(words.size() + time.size());
    if (wanted && all <= width) shown.add(words, StyledText::kSoft);
  }
  std::fprintf(file_, "%s\n", shown.add(time, StyledText::kSoft).bytes().c_str());
  std::fflush(file_);
}

StyledText Progress::readings(const Readings& readings, std::size_t count) const {
  StyledText shown = text();
  for (std::size_t i = 0; i < std::min(count, readings.size()); ++i) {
    const auto& [name, value] = readings[i];
    shown.add("  " + name + " ", StyledText::kSoft)
        .add(name == "accuracy" ? format_text("%.2f %%", 100 * value) : format_text("%.4f", value), StyledText::kBold);
  }
  return shown;
}

// "▕███▌   ▏" with eighths of a cell.
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

StyledText Progress::line(const Measurement& train) const {
  const StyledText epoch =
      text().add(format_text("epoch %" PRId64 "/%" PRId64, train.epoch + 1, total_.epochs), StyledText::kSoft);
  // In the last column the cursor would go to the next line.
  return line_beside_bar(train, epoch, terminal_ ? terminal_width(file_) - 1 : 0);
}

StyledText Progress::line_beside_bar(const Measurement& train, const StyledText& epoch, int width) const {
  const double left = train.step > 0 ? train.seconds / train.step * (total_.steps - train.step) : NAN;
  const std::string total = std::to_string(total_.steps);  // the step is as wide, or all that follows would jump
  const int digits = terminal_ ? static_cast<int>(total.size()) : 0;
  const std::string steps = format_text("%*" PRId64, digits, train.step) + "/" + total;
  const std::string rate = train.samples_per_second > 0 ? format_text("  %.0f", train.samples_per_second) : "";
  const auto tail = [&](const char* word, std::size_t count, const char* unit, bool with_eta) {
    StyledText shown = text();
    shown.add(word + steps).add(readings(train.readings, count));
    if (*unit != '\0' && !rate.empty()) shown.add(rate + unit);
    return with_eta ? shown.add("  ETA ", StyledText::kSoft).add(format_seconds(left)) : shown;
  };
  if (!terminal_) return text().add(epoch).add("  ").add(tail("step ", kMostReadings, " samples/s", true));
  const std::size_t all = std::min(train.readings.size(), kMostReadings), some = std::min<std::size_t>(all, 2);
  const double share = total_.steps > 0 ? static_cast<double>(train.step) / static_cast<double>(total_.steps) : 0;
  for (const auto& shown :
       {tail("step ", all, " samples/s", true), tail("", all, "/s", true), tail("", all, "", true),
        tail("step ", some, " samples/s", true), tail("", some, "/s", true), tail("", some, "", true),
        tail("", 1, "", true), tail("", 1, "", false), tail("", 0, "", false)}) {
    const int cells = width - epoch.columns() - shown.columns() - 4;
    if (cells >= kLeastCells) {
      return text().add(epoch).add(" ").add(bar(share, std::min(cells, kMostCells))).add(" ").add(shown);
    }
  }
  const std::string bare =
      format_text("epoch %" PRId64 "/%" PRId64 "  %" PRId64 "/", train.epoch + 1, total_.epochs, train.step) + total;
  return text().add(bare.substr(0, static_cast<std::size_t>(std::max(width, 0))));
}

// A terminal that has become narrower has broken the line into several.
void Progress::clear() {
  if (drawn_columns_ == 0) return;
  const int rows = (drawn_columns_ - 1) / std::max(1, terminal_width(file_));
  if (rows > 0) std::fprintf(file_, "\033[%dA\r\033[J", rows);
  std::fputs("\r\033[K", file_);
  std::fflush(file_);
  drawn_columns_ = 0;
}

}  // namespace phalanx
