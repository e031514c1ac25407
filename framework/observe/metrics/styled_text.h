// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/base/text.h"

namespace phalanx {

/// Text for a terminal, with the number of columns that it occupies. Without colors, styles are ignored.
class StyledText {
 public:
  static constexpr const char *kPlain = "", *kBold = "1", *kSoft = "2", *kGreen = "32", *kCyan = "36";

  explicit StyledText(bool colors) : colors_(colors) {}

  /// Appends `text`, which is UTF-8 and has only characters that are one column wide. `style`: a number of ECMA-48's
  /// SGR.
  StyledText& add(const std::string& text, const char* style = kPlain) {
    const bool styled = colors_ && *style != '\0';
    bytes_ += styled ? std::string("\033[") + style + "m" + text + "\033[0m" : text;
    columns_ += static_cast<int>(columns_of(text));
    return *this;
  }
  StyledText& add(const StyledText& text) {
    bytes_ += text.bytes_;
    columns_ += text.columns_;
    return *this;
  }

  int columns() const { return columns_; }
  const std::string& bytes() const { return bytes_; }

 private:
  bool colors_;
  std::string bytes_;
  int columns_ = 0;
};

}  // namespace phalanx
