// SPDX-License-Identifier: Apache-2.0
#include "tools/live/prometheus_text.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>

#include "framework/base/error.h"

namespace phalanx {
namespace {

// Reads one line from its beginning. Each function returns false, or nothing, if the line is malformed.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  std::optional<PrometheusSample> sample() {
    PrometheusSample sample;
    const auto end = rest_.find_first_of("{ ");
    if (end == rest_.npos || end == 0) return {};
    sample.name = rest_.substr(0, end);
    rest_.remove_prefix(end);
    if (rest_.front() == '{' && !labels(sample.labels)) return {};
    return value(sample.value) ? std::optional(sample) : std::nullopt;
  }

 private:
  bool labels(std::map<std::string, std::string>& labels) {
    rest_.remove_prefix(1);
    while (!rest_.empty() && rest_.front() != '}') {
      const auto equals = rest_.find("=\"");
      if (equals == rest_.npos) return false;
      const std::string key(rest_.substr(0, equals));
      rest_.remove_prefix(equals + 2);
      if (!quoted(labels[key])) return false;
      if (!rest_.empty() && rest_.front() == ',') rest_.remove_prefix(1);
    }
    if (rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // Reads text up to its closing quotation mark.
  bool quoted(std::string& text) {
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        rest_.remove_prefix(i + 1);
        return true;
      }
      const bool escaped = rest_[i] == '\\' && i + 1 < rest_.size();
      text += !escaped ? rest_[i] : rest_[++i] == 'n' ? '\n' : rest_[i];
    }
    return false;
  }

  // A time may follow the value.
  bool value(double& value) {
    const auto begin = rest_.find_first_not_of(' ');
    if (begin == rest_.npos) return false;
    const auto word = rest_.substr(begin, rest_.find(' ', begin) - begin);
    if (word == "NaN" || word == "+Inf" || word == "-Inf") {
      value = word == "NaN" ? NAN : word == "+Inf" ? INFINITY : -INFINITY;
      return true;
    }
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
    return parsed.ec == std::errc{} && parsed.ptr == word.data() + word.size();
  }

  std::string_view rest_;
};

}  // namespace

std::string PrometheusSample::label(const std::string& key) const {
  const auto found = labels.find(key);
  return found == labels.end() ? "" : found->second;
}

std::vector<PrometheusSample> parse_prometheus_text(std::string_view text, const std::string& source) {
  std::vector<PrometheusSample> samples;
  for (int number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    auto sample = LineReader(line).sample();
    if (!sample) throw DataError(source + ":" + std::to_string(number) + ": is not a line of metrics");
    samples.push_back(std::move(*sample));
  }
  return samples;
}

}  // namespace phalanx
