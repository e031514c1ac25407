#include "tools/launch/mpirun_notices.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>

namespace phalanx {
namespace {

constexpr std::size_t kDashes = 60;  // or more: the parts of mpirun do not agree

bool is_rule(std::string_view line) { return line.size() >= kDashes && line.find_first_not_of('-') == line.npos; }

// mpirun breaks its lines wherever a host's name makes them too long.
std::string one_line(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

std::optional<RankEnd> killed(const std::string& text) {
  int rank = 0, signal = 0;
  std::array<char, 256> host{};
  const auto begin = text.find("process rank ");
  if (begin == text.npos) return std::nullopt;
  const int found = std::sscanf(text.c_str() + begin, "process rank %d with PID %*d on node %255s exited on signal %d",
                                &rank, host.data(), &signal);
  if (found != 3) return std::nullopt;
  return RankEnd{.rank = rank, .status = W_EXITCODE(0, signal), .host = host.data()};
}

std::optional<RankEnd> exited(const std::string& text) {
  int status = 0;
  std::array<char, 256> name{};
  const auto begin = text.find("Process name: ");
  if (begin == text.npos) return std::nullopt;
  const int found = std::sscanf(text.c_str() + begin, "Process name: %255s Exit code: %d", name.data(), &status);
  const char* comma = std::strrchr(name.data(), ',');
  if (found != 2 || !comma) return std::nullopt;
  return RankEnd{.rank = std::atoi(comma + 1), .status = W_EXITCODE(status, 0)};
}

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
  std::vector<RankEnd> ends;
  for (const auto& notice : notices) {
    const std::string text = one_line(notice);
    if (auto end = killed(text)) ends.push_back(*end);
    if (auto end = exited(text)) ends.push_back(*end);
  }
  return ends;
}

}  // namespace phalanx
