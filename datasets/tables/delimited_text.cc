// SPDX-License-Identifier: Apache-2.0
#include "datasets/tables/delimited_text.h"

#include <csv.h>

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "framework/base/error.h"

namespace phalanx {
// The characters of Options in the form that the parser needs.
struct DelimitedSyntax {
  char separator;
  char quote;  // NUL, which text files do not contain, means no quote
  bool by_whitespace = false;
};

namespace {

constexpr char kBetweenWords = '\x1f';  // replaces white space for the parser
constexpr std::size_t kLinesToGuess = 50;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

char character_of(const std::string& key, const std::string& text) {
  if (text.size() == 1) return text[0];
  throw ConfigError("dataset." + key + ": \"" + text + "\" is not one character");
}

DelimitedSyntax syntax_of(const std::string& separator, const std::string& quote) {
  DelimitedSyntax syntax{.separator = ',', .quote = quote.empty() ? '\0' : character_of("quote", quote)};
  if (separator == "tab" || separator == "\\t") {
    syntax.separator = '\t';
  } else if (separator == "whitespace" || separator == " ") {
    syntax.separator = kBetweenWords;
    syntax.by_whitespace = true;
  } else if (separator.size() == 1) {
    syntax.separator = separator[0];
  } else {
    throw ConfigError("dataset.separator: \"" + separator + "\" is not one character, tab, whitespace or auto");
  }
  return syntax;
}

}  // namespace

/// Feeds libcsv line by line, so that the line of each row is known.
class DelimitedReader {
 public:
  DelimitedReader(const DelimitedSyntax& syntax, const DelimitedText::Options& options, std::string source)
      : syntax_(syntax), options_(options), source_(std::move(source)) {
    if (csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI) != 0) throw std::bad_alloc();
    csv_set_delim(&parser_, static_cast<unsigned char>(syntax.separator));
    csv_set_quote(&parser_, static_cast<unsigned char>(syntax.quote));
  }
  ~DelimitedReader() { csv_free(&parser_); }
  DelimitedReader(const DelimitedReader&) = delete;
  DelimitedReader& operator=(const DelimitedReader&) = delete;

  void read(std::string_view text, DelimitedText& into) {
    into_ = &into;
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      ++line_;
      if (line_ > options_.skip_lines) take(text.substr(begin, end - begin));
      begin = end;
    }
    if (csv_fini(&parser_, add_field, end_row, this) != 0) refuse(row_line_, "opens a quoted field that never ends");
    rethrow();
  }

 private:
  void take(std::string_view line) {
    if (!inside_row_) {
      if (is_ignored(line)) return;
      row_line_ = line_;
    }
    if (syntax_.by_whitespace) line = separated(line);
    inside_row_ = true;
    const auto taken = csv_parse(&parser_, line.data(), line.size(), add_field, end_row, this);
    rethrow();
    if (taken == line.size()) return;
    if (csv_error(&parser_) != CSV_EPARSE) throw std::bad_alloc();
    refuse(line_, std::string("has a quotation mark inside a field; put the field in quotes and double the mark, or "
                              "set dataset.quote: \"\" if quotes have no meaning in this file"));
  }

  bool is_ignored(std::string_view line) const {
    const bool tabs = syntax_.separator == '\t';
    const auto first = std::ranges::find_if(line, [&](char c) { return !is_blank(c) || (tabs && c == '\t'); });
    if (first == line.end()) return true;
    return !options_.comment.empty() && line.substr(first - line.begin()).starts_with(options_.comment);
  }

  // Returns the line with white space between two fields replaced by one separator.
  std::string_view separated(std::string_view line) {
    words_.clear();
    bool gap = false;
    for (const char c : line) {
      if (!quoted_ && (c == ' ' || c == '\t')) {
        gap = !words_.empty();
        continue;
      }
      if (gap && c != '\r' && c != '\n') words_ += kBetweenWords;
      gap = false;
      if (c == syntax_.quote) quoted_ = !quoted_;
      words_ += c;
    }
    return words_;
  }

  [[noreturn]] void refuse(std::int64_t line, const std::string& why) const {
    throw DataError(source_ + ": line " + std::to_string(line) + ": " + why);
  }

  // Exceptions must not pass through a C library, so callbacks store them.
  void rethrow() {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

  static void add_field(void* characters, std::size_t size, void* self) {
    auto& reader = *static_cast<DelimitedReader*>(self);
    try {
      auto& text = *reader.into_;
      text.characters_.append(static_cast<const char*>(characters), size);
      text.ends_.push_back(text.characters_.size());
    } catch (...) {
      reader.thrown_ = std::current_exception();
    }
  }

  static void end_row(int, void* self) {
    auto& reader = *static_cast<DelimitedReader*>(self);
    try {
      auto& text = *reader.into_;
      text.begins_.push_back(text.ends_.size());
      text.lines_.push_back(reader.row_line_);
      reader.inside_row_ = false;
    } catch (...) {
      reader.thrown_ = std::current_exception();
    }
  }

  csv_parser parser_{};
  const DelimitedSyntax syntax_;
  const DelimitedText::Options& options_;
  const std::string source_;
  DelimitedText* into_ = nullptr;
  std::int64_t line_ = 0, row_line_ = 0;
  bool inside_row_ = false;  // the next line continues the row inside a quoted field
  bool quoted_ = false;      // the same for lines that are divided by white space
  std::string words_;
  std::exception_ptr thrown_;
};

namespace {

// Returns the number of columns of a text with this separator, or 0 if it differs between lines. If `row_names`, the
// first line is a header with one column less.
std::size_t columns_with(const std::string& separator, std::string_view text, DelimitedText::Options options,
                         bool row_names) {
  options.separator = separator;
  try {
    const DelimitedText parts(text, options, "");
    if (parts.rows() == 0 || (row_names && parts.rows() == 1)) return 0;
    const auto columns = parts.fields(0) + (row_names ? 1 : 0);
    for (std::size_t row = row_names ? 1 : 0; row < parts.rows(); ++row) {
      if (parts.fields(row) != columns) return 0;
    }
    return columns;
  } catch (const DataError&) {
    return 0;  // with this separator, quotes are at invalid places
  }
}

// Returns the separator that divides the text into the most columns, or an empty string if none does.
std::string best_separator(std::string_view text, const DelimitedText::Options& options) {
  for (const bool by_whitespace : {false, true}) {
    for (const bool row_names : {false, true}) {
      std::string best;
      std::size_t most = row_names ? 2 : 1;
      for (const char* const separator : {",", ";", "tab", "|", "whitespace"}) {
        if (separator[0] == options.decimal || (std::string_view(separator) == "whitespace") != by_whitespace) continue;
        if (const auto columns = columns_with(separator, text, options, row_names); columns > most) {
          most = columns;
          best = separator;
        }
      }
      if (!best.empty()) return best;
    }
  }
  return "";
}

std::string_view first_lines(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < count && end < text.size(); ++i)
    end = std::min(text.find('\n', end), text.size() - 1) + 1;
  return text.substr(0, end);
}

std::string guess_separator(std::string_view text, const DelimitedText::Options& options) {
  // The last lines may end inside a quoted field that is cut off. Fewer lines are tried then.
  for (auto lines = kLinesToGuess + static_cast<std::size_t>(options.skip_lines); lines > 0; lines /= 2) {
    if (const auto best = best_separator(first_lines(text, lines), options); !best.empty()) return best;
  }
  return options.decimal == ',' ? ";" : ",";
}

}  // namespace

DelimitedText::DelimitedText(std::string_view text, const Options& options, const std::string& source) {
  const auto separator = options.separator == "auto" ? guess_separator(text, options) : options.separator;
  characters_.reserve(text.size());
  DelimitedReader(syntax_of(separator, options.quote), options, source).read(text, *this);
}

std::string_view DelimitedText::field(std::size_t row, std::size_t column) const {
  const auto i = begins_[row] + column;
  const auto begin = i == 0 ? 0 : ends_[i - 1];
  return std::string_view(characters_).substr(begin, ends_[i] - begin);
}

}  // namespace phalanx
