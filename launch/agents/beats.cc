// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/beats.h"

#include <algorithm>

#include "launch/agents/order_line.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::string_view kBeat = "alive";
constexpr std::size_t kLongestLine = 256;  // of those that agents write
constexpr char kBegin = '\0', kEnd = '\n';

}  // namespace

nanoseconds lease_length(bool goes_on, double lost_after) {
  if (!goes_on) return seconds(20);
  const std::chrono::duration<double> wanted(std::min(lost_after, 1e6));
  return std::max<nanoseconds>(seconds(5), std::chrono::duration_cast<nanoseconds>(wanted));
}

milliseconds beat_interval(nanoseconds lease) {
  return std::min(milliseconds(1000), std::chrono::duration_cast<milliseconds>(lease / 10));
}

// An agent looks at its lease once per interval. The rest is for the kernel, which ends the processes.
nanoseconds silence_of_lost_host(nanoseconds lease) {
  return lease + lease / 10 + 2 * beat_interval(lease) + milliseconds(300);
}

std::int64_t AgentLease::send(Time now) {
  while (!sent_.empty() && sent_.front().second + length_ <= now) sent_.pop_front();
  sent_.emplace_back(++last_, now);
  return last_;
}

void AgentLease::answered(std::int64_t beat) {
  const auto sent = std::ranges::find(sent_, beat, &std::pair<std::int64_t, Time>::first);
  if (sent == sent_.end()) return;
  end_ = std::max(end_, sent->second + length_);
  sent_.erase(sent_.begin(), sent + 1);
}

double HostBeats::silent_for(Clock::time_point now) const {
  return last_ ? std::chrono::duration<double>(now - *last_).count() : 0;
}

std::string beat_text(std::int64_t number) {
  return std::string(1, kBegin) + std::string(kBeat) + " " + std::to_string(number) + kEnd;
}

BeatReader::Result BeatReader::read(std::string_view part) {
  Result result;
  for (const char c : part) {
    if (c == kBegin) {
      beat_.emplace();
    } else if (!beat_) {
      result.text += c;
    } else if (beat_->size() == kLongestLine) {
      beat_.reset();
    } else if (c != kEnd) {
      *beat_ += c;
    } else {
      if (const auto number = number_after(kBeat, *beat_)) {
        result.beats.push_back(*number);
      } else {
        result.lines.push_back(*std::move(beat_));
      }
      beat_.reset();
    }
  }
  return result;
}

}  // namespace phalanx
