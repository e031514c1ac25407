// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/storage/crc32c.h"
#include "framework/base/text.h"
#include "tests/fuzz/mutators.h"

namespace phalanx::fuzz {
namespace {

constexpr std::array kNumbers{"0",
                              "-1",
                              "1",
                              "255",
                              "65536",
                              "1e9",
                              "2147483648",
                              "4294967295",
                              "9223372036854775807",
                              "0.5",
                              "4611686018427387904",
                              "18446744073709551615",
                              "null",
                              "[]",
                              "{}",
                              "\"\"",
                              "true"};

using Span = std::pair<std::size_t, std::size_t>;  // begin and end

bool is_structure(char byte) { return std::string_view("{}[],:").find(byte) != std::string_view::npos; }

// Returns the scalars of a document, with their quotation marks.
std::vector<Span> scalars_of(std::string_view text) {
  std::vector<Span> spans;
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && quoted && text[i] == '\\') {
      ++i;
      continue;
    }
    if (i < text.size() && text[i] == '"') quoted = !quoted;
    if (i < text.size() && (quoted || !is_structure(text[i]))) continue;
    if (i > begin) spans.emplace_back(begin, i);
    begin = i + 1;
  }
  return spans;
}

// Returns the objects and arrays of a document.
std::vector<Span> containers_of(std::string_view text) {
  std::vector<Span> spans;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '[') open.push_back(i);
    if ((text[i] != '}' && text[i] != ']') || open.empty()) continue;
    spans.emplace_back(open.back(), i + 1);
    open.pop_back();
  }
  return spans;
}

std::string part(const std::string& text, Span span) { return text.substr(span.first, span.second - span.first); }

std::string replaced(const std::string& text, Span span, std::string_view with) {
  return text.substr(0, span.first) + std::string(with) + text.substr(span.second);
}

}  // namespace

std::string mutate_json(const std::string& input, const MutateBytes& mutate, Random& random) {
  const auto scalars = scalars_of(input), containers = containers_of(input);
  if (scalars.empty() || containers.empty()) return mutate(input);
  const auto any_of = [&](const std::vector<Span>& spans) { return spans[random() % spans.size()]; };
  switch (random() % 7) {
    case 0:
    case 1:
      return replaced(input, any_of(scalars), kNumbers[random() % kNumbers.size()]);
    case 2:
      return replaced(input, any_of(scalars), part(input, any_of(scalars)));
    case 3:
      return replaced(input, any_of(containers), part(input, any_of(containers)));
    case 4: {
      const Span one = any_of(containers);
      return replaced(input, one, part(input, one) + "," + part(input, one));
    }
    case 5:
      return replaced(input, any_of(scalars), part(input, any_of(containers)));
    default: {
      const Span one = any_of(scalars);
      return replaced(input, one, mutate(part(input, one)));
    }
  }
}

std::string mutate_safetensors(const std::string& input, const MutateBytes& mutate, Random& random) {
  std::uint64_t length = 0;
  if (input.size() < sizeof(length)) return mutate(input);
  std::memcpy(&length, input.data(), sizeof(length));
  if (length > input.size() - sizeof(length)) return mutate(input);
  std::string header = input.substr(sizeof(length), length), elements = input.substr(sizeof(length) + length);
  if (random() % 4 == 0) {
    elements = mutate(elements);
  } else {
    header = mutate_json(header, mutate, random);
  }
  length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header + elements;
}

std::string mutate_manifest(const std::string& input, const MutateBytes& mutate, Random& random) {
  const auto end = input.rfind(",\n  \"crc32c\"");
  if (end == std::string::npos) return mutate(input);
  // With a bracket at its end, the body is a document.
  std::string body = mutate_json(input.substr(0, end) + "}", mutate, random);
  if (body.ends_with('}')) body.pop_back();
  return body + format_text(",\n  \"crc32c\": \"%08x\"\n}\n", crc32c(body.data(), body.size()));
}

}  // namespace phalanx::fuzz
