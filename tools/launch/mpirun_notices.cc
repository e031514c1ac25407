#include "tools/launch/mpirun_notices.h"

#include <sys/wait.h>

#include <regex>

namespace phalanx {
namespace {

constexpr std::size_t kDashes = 74;

bool is_rule(std::string_view line) { return line.size() == kDashes && line.find_first_not_of('-') == line.npos; }

// mpirun breaks its lines wherever a host's name makes them too long.
std::string one_line(const std::string& text) { return std::regex_replace(text, std::regex(R"(\s+)"), " "); }

}  // namespace

std::string MpirunNotices::feed(std::string_view piece) {
  pending_ += piece;
  std::string passed;
  std::size_t begin = 0;
  for (std::size_t end; (end = pending_.find('\n', begin)) != pending_.npos; begin = end + 1) {
    const std::string line = pending_.substr(begin, end - begin);
    if (is_rule(line)) {
      inside_ = !inside_;
      if (inside_) notices_.emplace_back();
    } else if (inside_) {
      notices_.back() += line + "\n";
    } else {
      passed += line + "\n";
    }
  }
  pending_.erase(0, begin);
  return passed;
}

std::string MpirunNotices::finish() {
  if (inside_) notices_.back() += pending_;
  std::string rest = inside_ ? "" : pending_;
  pending_.clear();
  return rest;
}

std::vector<RankEnd> ends_in(const std::vector<std::string>& notices) {
  static const std::regex killed(R"(process rank (\d+) with PID \d+ on node (\S+) exited on signal (\d+))");
  static const std::regex exited(R"(Process name: \[\S+,(\d+)\] Exit code: (\d+))");
  std::vector<RankEnd> ends;
  for (const auto& notice : notices) {
    const std::string text = one_line(notice);
    std::smatch match;
    if (std::regex_search(text, match, killed)) {
      ends.push_back({.rank = std::stoi(match[1]), .status = W_EXITCODE(0, std::stoi(match[3])), .host = match[2]});
    } else if (std::regex_search(text, match, exited)) {
      ends.push_back({.rank = std::stoi(match[1]), .status = W_EXITCODE(std::stoi(match[2]), 0)});
    }
  }
  return ends;
}

}  // namespace phalanx
