// SPDX-License-Identifier: Apache-2.0
#include "framework/base/plugin_check.h"

#include <algorithm>
#include <cstddef>

#include "framework/base/elf_section.h"
#include "framework/base/plugin_stamp.h"

namespace phalanx {

std::string stamp_problem(const std::string& path) {
  constexpr std::size_t kLongestStamp = 1024;
  const auto stamp = read_elf_section(path, PHALANX_PLUGIN_SECTION, kLongestStamp);
  if (!stamp) return "is not a plug-in: it lacks framework/base/plugin_stamp.cc of this version of Phalanx";
  std::string built = stamp->substr(0, stamp->find('\0'));
  std::ranges::replace_if(built, [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  if (built == PHALANX_PLUGIN_STAMP) return "";
  return "was built for " + built + ", but this program is " PHALANX_PLUGIN_STAMP "; build it again";
}

}  // namespace phalanx
