// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace phalanx {

/// Text that may come from a file, a network or a user, as it can be shown on any terminal: control characters other
/// than line feed and tab (escape, bell, carriage return, C1 and the like), characters that reverse the direction of
/// writing, and bytes that are not UTF-8 are spelled out, as in "\x1b[2J" or "\u202e".
std::string printable(std::string_view text);

/// printf to standard output, of printable text: for listings with names from files.
[[gnu::format(printf, 1, 2)]] void print_text(const char* pattern, ...);

/// The same for what goes to a terminal as a whole, our own progress lines and colours included: carriage returns and
/// the escape sequences that set colours, erase or move up pass, and so do bytes of characters that are written in
/// parts. Others, such as those that set a title, the clipboard or keys, are spelled out.
std::string printable_with_style(std::string_view text);

}  // namespace phalanx
