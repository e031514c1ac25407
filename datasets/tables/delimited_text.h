// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// The fields of delimited text (RFC 4180), as libcsv reads them: a field may be in quotes and then contain separators,
/// line breaks and doubled quotes; spaces around a field do not count. Lines end with LF, CRLF or CR. Empty lines are
/// ignored.
class DelimitedText {
 public:
  struct Options {
    std::string separator = "auto";  // a character, "tab", "whitespace" (any number of spaces and tabs), or "auto"
    std::string quote = "\"";        // a character; empty: quotation marks have no meaning
    std::string comment{};           // lines that begin with this text are ignored; empty: none
    std::int64_t skip_lines = 0;     // at the beginning
    char decimal = '.';              // "auto" does not take this character for the separator
  };

  /// `source` names the text in errors. Throws DataError with the line for a quotation mark inside a field without
  /// quotes and for a field that is never closed, and ConfigError for options that are none.
  ///
  /// "auto" chooses among , ; tab | and whitespace the one that divides the first lines into the most columns, as many
  /// in each line.
  DelimitedText(std::string_view text, const Options& options, const std::string& source);

  std::size_t rows() const { return lines_.size(); }
  std::size_t fields(std::size_t row) const { return begins_[row + 1] - begins_[row]; }
  std::string_view field(std::size_t row, std::size_t column) const;

  /// Returns the number of the line, from 1, on which the row begins.
  std::int64_t line(std::size_t row) const { return lines_[row]; }

 private:
  friend class DelimitedReader;

  std::string characters_;
  std::vector<std::size_t> ends_;       // of each field, in characters_
  std::vector<std::size_t> begins_{0};  // the first field of each row; the last one is the number of fields
  std::vector<std::int64_t> lines_;     // of each row
};

}  // namespace phalanx
