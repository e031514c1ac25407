#include "engine/watch/progress.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>

namespace phalanx {
namespace {

constexpr auto kTerminalInterval = std::chrono::milliseconds(100);
constexpr auto kPlainInterval = std::chrono::seconds(5);
constexpr int kLeastCells = 6, kMostCells = 30;  // of the bar

template <class... Args>
std::string format(const char* pattern, Args... args) {
  std::string text(256, '\0');
  text.resize(static_cast<std::size_t>(std::max(0, std::snprintf(text.data(), text.size(), pattern, args...))));
  return text;
}

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "--:--";
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 3600) return format("%" PRId64 ":%02" PRId64, whole / 60, whole % 60);
  return format("%" PRId64 ":%02" PRId64 ":%02" PRId64, whole / 3600, whole / 60 % 60, whole % 60);
}

std::string format_readings(const Readings& readings) {
  std::string text;
  for (const auto& [name, value] : readings) {
    text += "  " + name + (name == "accuracy" ? format(" %.2f %%", 100 * value) : format(" %.4f", value));
  }
  return text;
}

// "▕███▌   ▏" with eighths of a cell.
std::string draw_bar(double share, int cells) {
  static const char* const kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::clamp(share, 0.0, 1.0) * cells * 8);
  std::string bar = "▕";
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  bar += kEighths[eighths % 8];
  const int drawn = eighths / 8 + (eighths % 8 != 0);
  return bar.append(static_cast<std::size_t>(cells - drawn), ' ') + "▏";
}

int terminal_width(std::FILE* file) {
  winsize size{};
  return ::ioctl(::fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(std::FILE* file, bool terminal, Total total) : file_(file), total_(total), terminal_(terminal) {}

Progress::~Progress() { clear(); }

void Progress::update(const Measurement& train) {
  const auto now = Clock::now();
  if (now - last_ < (terminal_ ? Clock::duration(kTerminalInterval) : Clock::duration(kPlainInterval))) return;
  // A plain line stays, so it waits until there is something to read; but not so long that nothing seems to happen.
  if (!terminal_ && train.readings.empty() && std::chrono::duration<double>(train.seconds) < kPlainInterval) return;
  last_ = now;
  std::fprintf(file_, terminal_ ? "\r\033[K%s" : "%s\n", line(train).c_str());
  std::fflush(file_);
  drawn_ = terminal_;
}

void Progress::result(const Measurement& test) {
  clear();
  const std::string what =
      format("epoch %" PRId64 "/%" PRId64 "  step %" PRId64 "  ", test.epoch + 1, total_.epochs, test.step) +
      test.split + format_readings(test.readings);
  const std::string rate = format("  %.0f samples/s", test.samples_per_second);
  const std::string time = "  " + format_seconds(test.seconds);
  const bool fits = !terminal_ || static_cast<int>(what.size() + rate.size() + time.size()) <= terminal_width(file_);
  std::fprintf(file_, "%s%s%s\n", what.c_str(), fits ? rate.c_str() : "", time.c_str());
  std::fflush(file_);
}

std::string Progress::line(const Measurement& train) const {
  const double left = train.step > 0 ? train.seconds / train.step * (total_.steps - train.step) : NAN;
  const std::string epoch = format("epoch %" PRId64 "/%" PRId64, train.epoch + 1, total_.epochs);
  const std::string total = std::to_string(total_.steps);  // the step is as wide, or all that follows would jump
  const int digits = terminal_ ? static_cast<int>(total.size()) : 0;
  const std::string steps = format("%*" PRId64, digits, train.step) + "/" + total;
  const std::string readings = format_readings(train.readings), eta = "  ETA " + format_seconds(left);
  const std::string rate = train.samples_per_second > 0 ? format("  %.0f", train.samples_per_second) : "";
  const std::string all = "step " + steps + readings + (rate.empty() ? "" : rate + " samples/s") + eta;
  if (!terminal_) return epoch + "  " + all;
  const std::string main = format_readings({train.readings.begin(), train.readings.begin() + !train.readings.empty()});
  const double share = total_.steps > 0 ? static_cast<double>(train.step) / static_cast<double>(total_.steps) : 0;
  const int width = terminal_width(file_) - 1;  // in the last column the cursor would go to the next line
  for (const auto& tail : {all, steps + readings + (rate.empty() ? "" : rate + "/s") + eta, steps + readings + eta,
                           steps + main + eta, steps + main, steps}) {
    const int cells = width - static_cast<int>(epoch.size() + tail.size()) - 4;
    if (cells >= kLeastCells) return epoch + " " + draw_bar(share, std::min(cells, kMostCells)) + " " + tail;
  }
  return (epoch + "  " + steps.substr(steps.find_first_not_of(' '))).substr(0, static_cast<std::size_t>(width));
}

void Progress::clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", file_);
  std::fflush(file_);
  drawn_ = false;
}

}  // namespace phalanx
