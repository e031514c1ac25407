// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/scalar.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>

namespace phalanx::config {
namespace {

ValueProblem expected(const std::string& type, const Node& node) {
  return {"expected " + type + ", got " + what_is(node)};
}

bool is_plain_scalar(const Node& node) { return node.kind == Node::Kind::kScalar && !node.quoted; }

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// Returns the boolean that Python or YAML 1.1 would read in the text, or an empty string.
std::string suggested_boolean(const std::string& text) {
  constexpr std::array kTrue = {"true", "yes", "on", "y", "1"};
  constexpr std::array kFalse = {"false", "no", "off", "n", "0"};
  const std::string lower = lower_case(text);
  if (std::ranges::count(kTrue, lower) > 0) return "true";
  return std::ranges::count(kFalse, lower) > 0 ? "false" : "";
}

// Returns "+3" and "010" without the plus sign and the leading zeros, which a config's integers do not have: YAML 1.1
// reads "010" as octal. Returns an empty string for any other text.
std::string plain_digits(const std::string& text) {
  const bool has_sign = text.starts_with('+') || text.starts_with('-');
  const std::string digits = text.substr(has_sign ? 1 : 0);
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) return "";
  const std::string kept = digits.substr(std::min(digits.find_first_not_of('0'), digits.size() - 1));
  const bool plain = kept == digits && !text.starts_with('+');
  return plain ? "" : (text.starts_with('-') ? "-" : "") + kept;
}

// Parses all of the text as a number. from_chars takes no plus sign, and it accepts "inf" and "nan", which YAML writes
// .inf and .nan.
template <class T>
std::errc parse_number(std::string_view text, T& value) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  if (text.find_first_of("iInN") != text.npos) return std::errc::invalid_argument;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return rest == text.data() + text.size() ? error : std::errc::invalid_argument;
}

}  // namespace

std::optional<ValueProblem> read(const Node& node, bool& value) {
  if (!is_plain_scalar(node)) return expected("true or false", node);
  if (node.text != "true" && node.text != "false") {
    ValueProblem complaint = expected("true or false", node);
    complaint.suggestion = suggested_boolean(node.text);
    return complaint;
  }
  value = node.text == "true";
  return {};
}

std::optional<ValueProblem> read(const Node& node, std::int64_t& value) {
  ValueProblem complaint = expected("an integer", node);
  if (!is_plain_scalar(node)) return complaint;
  if (const std::string digits = plain_digits(node.text); !digits.empty()) {
    return ValueProblem{"expected an integer without plus sign or leading zeros, got " + what_is(node), digits};
  }
  std::int64_t parsed = 0;
  const std::errc error = parse_number(node.text, parsed);
  if (error == std::errc::result_out_of_range) return ValueProblem{"too large for an integer: " + what_is(node)};
  if (error == std::errc()) {
    value = parsed;
    return {};
  }
  // Users who think of the value and not of its type write 1e3 or 64.0.
  double number = 0;
  constexpr double kExact = 9007199254740992;  // 2^53: integers up to here are exact
  if (parse_number(node.text, number) == std::errc() && std::trunc(number) == number && std::abs(number) <= kExact) {
    complaint.suggestion = std::to_string(static_cast<std::int64_t>(number));
  }
  return complaint;
}

std::optional<ValueProblem> read(const Node& node, double& value) {
  if (!is_plain_scalar(node)) return expected("a number", node);
  double parsed = 0;
  const std::errc error = parse_number(node.text, parsed);
  if (error == std::errc::result_out_of_range) return ValueProblem{"out of the range of a number: " + what_is(node)};
  if (error != std::errc()) {
    constexpr std::array kNotFinite = {".nan", ".inf", "-.inf", "+.inf", "nan", "inf", "-inf"};
    return expected(std::ranges::count(kNotFinite, lower_case(node.text)) > 0 ? "a finite number" : "a number", node);
  }
  value = parsed;
  return {};
}

std::optional<ValueProblem> read(const Node& node, std::string& value) {
  if (node.kind == Node::Kind::kScalar) {
    // System calls would take the text only up to there, and so use another file or folder than was written.
    if (node.text.find('\0') != node.text.npos) return ValueProblem{"contains a NUL character (\"\\0\")"};
    value = node.text;
    return {};
  }
  ValueProblem complaint = expected("a string", node);
  if (node.kind == Node::Kind::kNull) complaint.message += " (an empty string is written \"\")";
  return complaint;
}

std::string shortest(double value) {
  // to_chars without a format would choose by length alone: 1e+06, but 999999.
  const double size = std::abs(value);
  const bool fixed = value == 0 || (size >= 1e-4 && size < 1e16);
  std::array<char, 32> text;
  const auto format = fixed ? std::chars_format::fixed : std::chars_format::scientific;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value, format).ptr};
}

bool needs_quotes(const std::string& text) {
  constexpr std::array kReserved = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/";
  const std::string allowed = std::string(kLetters) + "0123456789.-+@";
  // A text that starts with a letter is neither a number nor a date. A path may start with a slash.
  if (text.find_first_of(kLetters) != 0 || text.find_first_not_of(allowed) != text.npos) return true;
  return std::ranges::count(kReserved, lower_case(text)) > 0;
}

}  // namespace phalanx::config
