// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/session/session_progress.h"

#include "framework/base/printable.h"
#include "framework/base/text.h"

namespace phalanx::regress {
namespace {

using history::CaseState;

constexpr std::chrono::milliseconds kInterval{250};
constexpr const char* kClear = "\r\033[K";

std::string clock_text(double seconds) {
  const auto whole = static_cast<long long>(seconds + 0.5);
  if (whole < 3600) return format_text("%lld:%02lld", whole / 60, whole % 60);
  return format_text("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
}

bool is_red(CaseState state) { return state == CaseState::kFailed || state == CaseState::kError; }

// Failures stand out from the other lines.
std::string state_word(CaseState state) {
  if (state == CaseState::kFailed) return "FAILED";
  return state == CaseState::kError ? "ERROR" : history::to_text(state);
}

}  // namespace

std::string ended_lines(const Counts& counts, const EndedCase& ended) {
  const std::string total = std::to_string(counts.total), number = std::to_string(counts.ended);
  std::string text = "[" + std::string(total.size() - number.size(), ' ') + number + "/" + total + "] " +
                     format_text("%-11s ", state_word(ended.state).c_str()) + ended.name;
  if (!ended.folder.empty()) text += format_text("  %.1f s", ended.seconds);
  text += "\n";
  if (ended.reason.empty()) return text;
  text += "    " + printable(ended.reason) + "\n";
  if (!ended.folder.empty()) text += "    see " + ended.folder + "\n";
  return text;
}

std::string status_line(const Counts& counts, std::size_t measured, double seconds,
                        const std::vector<std::pair<std::string, double>>& running, int columns) {
  std::string line = std::to_string(counts.ended) + "/" + std::to_string(counts.total) + " ended";
  if (counts.failed > 0) line += ", " + std::to_string(counts.failed) + " failed";
  if (measured > 0 && counts.ended < counts.total) {
    const double each = seconds / static_cast<double>(measured);
    line += ", about " + clock_text(each * static_cast<double>(counts.total - counts.ended)) + " left";
  }
  const char* separator = "; running: ";
  for (const auto& [name, since] : running) {
    line += separator + name + " (" + clock_text(since) + ")";
    separator = ", ";
  }
  const auto width = static_cast<std::size_t>(columns);
  return line.size() <= width ? line : line.substr(0, width - 1) + "…";  // the names of cases are ASCII
}

SessionProgress::SessionProgress(Console& console, std::size_t total, std::size_t ended)
    : console_(console), counts_{.total = total, .ended = ended}, ended_before_(ended) {}

SessionProgress::~SessionProgress() { write(""); }

void SessionProgress::case_ended(const EndedCase& ended) {
  ++counts_.ended;
  if (is_red(ended.state)) ++counts_.failed;
  write(ended_lines(counts_, ended));
}

void SessionProgress::update(const std::vector<std::pair<std::string, double>>& running) {
  const int columns = console_.columns();
  const auto now = Clock::now();
  if (columns < 2 || now - drawn_at_ < kInterval) return;
  drawn_at_ = now;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  const auto line = status_line(counts_, counts_.ended - ended_before_, seconds, running, columns - 1);
  if (console_.draw(kClear + line)) drawn_ = true;
}

void SessionProgress::write(const std::string& lines) {
  const std::string text = (drawn_ ? kClear : "") + lines;
  drawn_ = false;
  if (!text.empty()) console_.write(text);
}

}  // namespace phalanx::regress
