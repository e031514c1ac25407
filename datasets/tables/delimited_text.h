// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// The fields of delimited text (RFC 4180), as libcsv reads them. A field may be in quotes and can then contain
/// separators, line breaks and doubled quotes. Spaces around a field are ignored. Lines end with LF, CRLF or CR. Empty
/// lines are ignored.
class DelimitedText {
 public:
  struct Options {
    std::string separator = "auto";  // a character, "tab", "whitespace" (any number of spaces and tabs), or "auto"
    std::string quote = "\"";        // a character; empty: quotation marks have no meaning
    std::string comment{};           // lines that begin with this text are ignored; empty: none
    std::int64_t skip_lines = 0;     // lines to skip at the beginning
    char decimal = '.';              // "auto" does not choose this character as separator
  };

  /// `source` names the text in errors. Throws DataError, with the line, for a quotation mark inside an unquoted field
  /// and for a quoted field that never ends. Throws ConfigError for invalid options.
  ///
  /// "auto" chooses one of , ; tab | and whitespace: the one that divides the first lines into the largest number of
  /// columns, the same in each line.
  DelimitedText(std::string_view text, const Options& options, const std::string& source);

  std::size_t rows() const { return lines_.size(); }
  std::size_t fields(std::size_t row) const { return begins_[row + 1] - begins_[row]; }
  std::string_view field(std::size_t row, std::size_t column) const;

  /// Returns the number, from 1, of the line on which the row begins.
  std::int64_t line(std::size_t row) const { return lines_[row]; }

 private:
  friend class DelimitedReader;

  std::string characters_;
  std::vector<std::size_t> ends_;       // end of each field in characters_
  std::vector<std::size_t> begins_{0};  // the first field of each row, then the number of fields
  std::vector<std::int64_t> lines_;     // line of each row
};

}  // namespace phalanx
