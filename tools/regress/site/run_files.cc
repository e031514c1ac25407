// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/site/run_files.h"

#include <string_view>
#include <system_error>

#include "framework/base/text.h"

namespace phalanx::site {
namespace {

std::string escape_address(const std::string& path) {
  constexpr std::string_view kSpecial = " \"#%<>?\\^`{|}";
  std::string escaped;
  for (const char c : path) {
    const bool plain = c > ' ' && c < 127 && kSpecial.find(c) == std::string_view::npos;
    escaped += plain ? std::string(1, c) : format_text("%%%02X", static_cast<unsigned char>(c));
  }
  return escaped;
}

}  // namespace

std::string RunFiles::link_to(const std::string& stored) const {
  std::error_code error;
  const auto path = path_of(stored);
  if (!std::filesystem::exists(path, error)) return {};
  const auto relative = std::filesystem::relative(path, site, error);
  return error ? "" : escape_address(relative.generic_string());
}

}  // namespace phalanx::site
