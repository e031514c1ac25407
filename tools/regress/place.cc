// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/place.h"

#include <algorithm>

#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx::regress {

std::unique_ptr<Place> make_place(const std::string& on, const std::string& owner) {
  const auto colon = on.find(':');
  const std::string name = on.substr(0, colon);
  const auto known = Places::global().names();
  if (std::ranges::count(known, name) == 0) {
    const std::string near = nearest(name, known);
    throw ConfigError("--on " + on + ": unknown place \"" + name + "\"; known: " + join(known, ", ") +
                      (near.empty() ? "" : " (did you mean \"" + near + "\"?)"));
  }
  return Places::Choice(name).make({.argument = colon == on.npos ? "" : on.substr(colon + 1), .owner = owner});
}

}  // namespace phalanx::regress
