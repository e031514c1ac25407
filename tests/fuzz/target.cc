// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/target.h"

#include <cstddef>

#include "framework/base/error.h"

namespace phalanx::fuzz {
namespace {

std::vector<Target>& all() {
  static std::vector<Target> targets;
  return targets;
}

}  // namespace

bool add_target(const Target& target) {
  all().push_back(target);
  return true;
}

const std::vector<Target>& targets() { return all(); }

bool accepts(const Target& target, std::string_view input) {
  try {
    target.parse(input);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string mutate_bytes(std::string text, Random& random) {
  for (std::size_t changes = 1 + random() % 4; changes > 0; --changes) {
    const std::size_t at = random() % (text.size() + 1);
    switch (random() % 5) {
      case 0:
        text.insert(at, 1, static_cast<char>(random()));
        break;
      case 1:
        text.erase(at, 1 + random() % 8);
        break;
      case 2:
        text.insert(at, std::string(text, at, 1 + random() % 16));
        break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(random() % 2 == 0 ? 0xff : random());
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ 1U << random() % 8);
    }
  }
  return text;
}

}  // namespace phalanx::fuzz
