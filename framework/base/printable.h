// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace phalanx {

/// Makes text that may come from a file, a network or a user safe to show on any terminal. Control characters other
/// than line feed and tab (escape, bell, carriage return, C1 and so on), characters that reverse the direction of
/// writing, and bytes that are not UTF-8 are written as escapes such as "\x1b[2J" or "\u202e".
std::string printable(std::string_view text);

/// Prints to standard output as printf does, but makes the text printable first. For listings that contain names from
/// files.
[[gnu::format(printf, 1, 2)]] void print_text(const char* pattern, ...);

/// Makes text printable that is meant for a terminal and includes our own progress lines and colours. Carriage returns
/// and the escape sequences that set colours, erase or move up are kept, and so are bytes of characters that are
/// written in several parts. Other sequences, such as those that set a title, the clipboard or keys, are written as
/// escapes.
std::string printable_with_style(std::string_view text);

}  // namespace phalanx
