// SPDX-License-Identifier: Apache-2.0
#include "launch/failure/failure_report.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "framework/base/console.h"
#include "framework/base/printable.h"

namespace phalanx {
namespace {

constexpr int kColumns = 100;
constexpr int kLogLines = 10;
constexpr std::size_t kFrames = 16;
constexpr std::streamoff kBytesPerLine = 1024;

int columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kColumns;
  return std::min<int>(kColumns, size.ws_col);
}

// Returns the width in characters: continuation bytes of UTF-8 take no column.
int width(std::string_view text) {
  return static_cast<int>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

// Removes escape sequences and control characters. Output for a terminal, such as a progress bar, would break the
// frame.
std::string without_style(std::string_view line) {
  std::string text;
  bool escape = false;  // within ESC [ ... letter
  for (const char c : line) {
    const bool control = static_cast<unsigned char>(c) < ' ' || c == 0x7F;
    if (escape) {
      escape = c == '[' || (c >= '0' && c <= '?');
    } else if (c == 0x1B) {
      escape = true;
    } else if (!control || c == '\t') {
      text += c == '\t' ? ' ' : c;
    }
  }
  return printable(text);
}

class Frame {
 public:
  explicit Frame(int columns) : columns_(std::max(columns, 20)) {}

  void open(const std::string& title) { rule("┌─ " + title + " "); }
  void close() { rule("└"); }
  void blank() { text_ += "│\n"; }

  void paragraph(std::string_view text, const std::string& indent = "") {
    while (!text.empty()) {
      const auto end = text.find('\n');
      line(without_style(text.substr(0, end)), indent);
      text.remove_prefix(end == text.npos ? text.size() : end + 1);
    }
  }

  std::string text() && { return std::move(text_); }

 private:
  void rule(const std::string& start) {
    text_ += start;
    for (int column = width(start); column < columns_; ++column) text_ += "─";
    text_ += "\n";
  }

  void line(std::string_view text, const std::string& indent) {
    const int room = columns_ - 2 - width(indent);
    do {
      const auto length = fitting(text, room);
      text_ += "│ " + indent + std::string(text.substr(0, length)) + "\n";
      text.remove_prefix(length);
      if (!text.empty()) text.remove_prefix(1);  // the space at which it was broken
    } while (!text.empty());
  }

  // Returns the number of bytes up to the last space at which the line fits into `room` columns; at least one word.
  static std::size_t fitting(std::string_view text, int room) {
    if (width(text) <= room) return text.size();
    const auto indent = text.find_first_not_of(' ');
    std::size_t fits = text.find(' ', indent == text.npos ? 0 : indent);
    for (auto space = fits; space != text.npos && width(text.substr(0, space)) <= room;) {
      fits = space;
      space = text.find(' ', space + 1);
    }
    return std::min(fits, text.size());
  }

  int columns_;
  std::string text_;
};

// Returns the innermost functions of a crash, with a heading; empty if the rank has left no trace.
std::string stack_trace(const std::string& log_folder, int rank) {
  auto frames = crash_frames(log_folder, rank);
  std::string text;
  if (frames.size() > kFrames) frames.resize(kFrames);
  for (const auto& frame : frames) text += "\n  " + frame;
  return text.empty() ? "" : "\nStack trace:" + text;
}

std::string title(const Failure& failure, const FrameContext& context) {
  std::string text = failure.rank < 0 ? "The job" : "Rank " + std::to_string(failure.rank);
  if (failure.rank >= 0 && context.ranks > 0) text += " of " + std::to_string(context.ranks);
  if (!failure.host.empty()) text += " on " + failure.host;
  return text + " failed";
}

}  // namespace

std::string frame(const Failure& failure, const FrameContext& context) {
  Frame frame(context.columns);
  frame.open(title(failure, context));
  frame.paragraph(failure.message.empty() ? "It gave no reason." : failure.message);
  if (!context.last_lines.empty()) {
    frame.blank();
    frame.paragraph("Last lines of its log:");
    for (const auto& line : context.last_lines) frame.paragraph(line.empty() ? " " : line, "  ");
  }
  if (!failure.log.empty() || context.others > 0) frame.blank();
  if (!failure.log.empty()) frame.paragraph("Log: " + failure.log);
  if (context.others == 1) frame.paragraph("1 other rank ended with it.");
  if (context.others > 1) frame.paragraph(std::to_string(context.others) + " other ranks ended with it.");
  frame.close();
  return std::move(frame).text();
}

std::vector<std::string> last_lines(const std::string& path, int count) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::streamoff size = file.tellg();
  const std::streamoff start = std::max<std::streamoff>(0, size - count * kBytesPerLine);
  file.seekg(start);
  std::deque<std::string> lines;
  std::string line;
  if (start > 0) std::getline(file, line);  // most likely the second half of a line
  while (std::getline(file, line)) {
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    lines.push_back(line);
    if (lines.size() > static_cast<std::size_t>(count)) lines.pop_front();
  }
  return {lines.begin(), lines.end()};
}

std::string log_path(const std::string& log_folder, int rank) {
  return log_folder + "/rank" + std::to_string(rank) + ".log";
}

void report(const Verdict& verdict, int ranks, const std::string& log_folder) {
  if (!verdict.cause) return;
  Failure failure = *verdict.cause;
  std::error_code none;
  const std::string log = log_path(log_folder, failure.rank);
  if (failure.log.empty() && failure.rank >= 0 && std::filesystem::exists(log, none)) failure.log = log;
  FrameContext context{.ranks = ranks, .others = verdict.others, .columns = columns()};
  if (verdict.unexplained) {
    const std::string trace = stack_trace(log_folder, failure.rank);
    failure.message += trace;
    if (trace.empty()) context.last_lines = last_lines(failure.log, kLogLines);  // otherwise they are the trace
  }
  standard_error().write(frame(failure, context));
  standard_error().flush();
}

}  // namespace phalanx
