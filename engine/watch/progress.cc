#include "engine/watch/progress.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>

namespace phalanx {
namespace {

constexpr auto kTerminalInterval = std::chrono::milliseconds(100);
constexpr auto kPlainInterval = std::chrono::seconds(5);

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
  last_ = now;
  const std::string line = bar(train);
  std::fprintf(file_, terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
  std::fflush(file_);
  drawn_ = terminal_;
}

void Progress::result(const Measurement& test) {
  clear();
  std::fprintf(file_, "epoch %" PRId64 "/%" PRId64 "  step %" PRId64 "  %s%s  %.0f samples/s  %s\n", test.epoch + 1,
               total_.epochs, test.step, test.split.c_str(), format_readings(test.readings).c_str(),
               test.samples_per_second, format_seconds(test.seconds).c_str());
  std::fflush(file_);
}

std::string Progress::bar(const Measurement& train) const {
  const double left = train.step > 0 ? train.seconds / train.step * (total_.steps - train.step) : NAN;
  const std::string head = format("epoch %" PRId64 "/%" PRId64, train.epoch + 1, total_.epochs);
  std::string tail = format("step %" PRId64 "/%" PRId64, train.step, total_.steps) + format_readings(train.readings) +
                     format("  %.0f samples/s  ETA ", train.samples_per_second) + format_seconds(left);
  if (!terminal_) return head + "  " + tail;
  const int room = terminal_width(file_) - 1 - static_cast<int>(head.size() + tail.size()) - 4;
  if (room < 5) return (head + "  " + tail).substr(0, static_cast<std::size_t>(terminal_width(file_) - 1));
  const double share = total_.steps > 0 ? static_cast<double>(train.step) / static_cast<double>(total_.steps) : 0;
  return head + " " + draw_bar(share, std::min(room - 1, 30)) + " " + tail;
}

void Progress::clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", file_);
  std::fflush(file_);
  drawn_ = false;
}

}  // namespace phalanx
