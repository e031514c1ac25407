// SPDX-License-Identifier: Apache-2.0
#include "framework/base/environment.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>

#include "framework/base/error.h"

namespace phalanx {

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::optional<std::int64_t> environment_int(const std::string& name) {
  const auto text = environment(name);
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || rest != end) {
    throw ConfigError("environment variable " + name + ": expected an integer, got \"" + *text + "\"");
  }
  return value;
}

std::string host_name() {
  std::array<char, 256> name{};
  // A name that does not fit may lack its terminating zero, so the last byte of the array is never filled.
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace phalanx
