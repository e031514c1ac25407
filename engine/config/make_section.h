// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "framework/base/config/config.h"

namespace phalanx {

/// Calls `make`. If there is not enough memory, or LibTorch refuses a size, logs the error with its stack trace and
/// throws an Error with the text of the config's section instead.
void with_section(const std::string& key, const std::function<std::string()>& yaml, const std::function<void()>& make);

/// Returns choice.make(args...), where `choice` is the section `key` of a config. Throws like with_section().
template <class Choice, class... Args>
auto make_section(const char* key, const Choice& choice, const Args&... args) {
  decltype(choice.make(args...)) made;
  with_section(key, [&] { return config::dump_as(key, choice); }, [&] { made = choice.make(args...); });
  return made;
}

}  // namespace phalanx
