// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/protocol/greeting.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include "framework/base/authentication.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/ps/protocol/message.h"

namespace phalanx::ps {
namespace {

constexpr std::int64_t kMaxMembers = 64;  // per chain

// Parses the fields of a greeting. Each is written as "5:hello," (a netstring), always in the same order.
class Fields {
 public:
  explicit Fields(std::string_view text) : rest_(text) {}

  std::string text() {
    const auto size = parsed<std::size_t>(until(':'));
    if (rest_.size() <= size || rest_[size] != ',') refuse();
    const std::string field(rest_.substr(0, size));
    rest_.remove_prefix(size + 1);
    return field;
  }

  template <class Number>
  Number number() {
    return parsed<Number>(text());
  }

  void end() const {
    if (!rest_.empty()) refuse();
  }

  [[noreturn]] static void refuse() { throw ConnectionError("the greeting is malformed"); }

 private:
  std::string_view until(char mark) {
    const auto end = rest_.find(mark);
    if (end == std::string_view::npos) refuse();
    const auto found = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return found;
  }

  template <class Number>
  static Number parsed(std::string_view digits) {
    Number number{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc{} || end != digits.data() + digits.size()) refuse();
    return number;
  }

  std::string_view rest_;
};

std::string field(std::string_view text) { return std::to_string(text.size()) + ":" + std::string(text) + ","; }

}  // namespace

std::string encode(const Greeting& greeting) {
  std::string text;
  for (const auto& word :
       {greeting.job, std::to_string(greeting.client), greeting.incarnation, std::to_string(greeting.memory),
        greeting.memory_check, std::to_string(greeting.member), std::to_string(static_cast<int>(greeting.take_over)),
        std::to_string(static_cast<int>(greeting.replica)), format_text("%.17g", greeting.failover),
        std::to_string(greeting.chain.size())}) {
    text += field(word);
  }
  for (const auto& member : greeting.chain) text += field(member);
  if (kProofBytes + text.size() > kMaxGreeting) {
    throw Error("the greeting of a parameter server would have " + std::to_string(kProofBytes + text.size()) +
                " bytes, but at most " + std::to_string(kMaxGreeting) +
                " are allowed; shorten the name of the run or the addresses of the servers");
  }
  return text;
}

Greeting decode_greeting(std::string_view text) {
  Fields fields(text);
  Greeting greeting;
  greeting.job = fields.text();
  greeting.client = fields.number<std::int64_t>();
  greeting.incarnation = fields.text();
  greeting.memory = fields.number<std::int64_t>();
  greeting.memory_check = fields.text();
  greeting.member = fields.number<std::int64_t>();
  greeting.take_over = fields.number<int>() != 0;
  greeting.replica = fields.number<int>() != 0;
  greeting.failover = fields.number<double>();
  const auto members = fields.number<std::int64_t>();
  if (members < 0 || members > kMaxMembers) Fields::refuse();
  for (std::int64_t i = 0; i < members; ++i) greeting.chain.push_back(fields.text());
  fields.end();
  if (greeting.member < 0 || !std::isfinite(greeting.failover) || greeting.failover < 0) Fields::refuse();
  return greeting;
}

}  // namespace phalanx::ps
