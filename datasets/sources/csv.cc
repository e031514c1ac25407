// Files of comma-separated numbers (RFC 4180, without quotes, which numbers do not need): one sample a line, one of
// whose columns is its class or the number to be told. A first line of names is found by itself.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/files/table.h"
#include "datasets/malformed.h"
#include "datasets/root.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

struct CsvConfig {
  std::string root;
  std::string train = "train.csv";
  std::string test = "test.csv";
  std::string separator = ",";
  std::string target;
  std::int64_t classes = 0;

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of the files; empty: ${PHALANX_DATA}/csv, else data/csv");
    v("train", train, "file to train on");
    v("test", test, "file to test on");
    v("separator", separator, "character between two numbers");
    v("target", target, "column to be told, by the name in the first line or by number from 0; empty: the last one");
    v("classes", classes, "the target is one of so many classes, 0 to classes - 1; 0: it is a number",
      config::at_least(0));
  }
};

bool number_of(std::string_view text, double& value) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

class Reader {
 public:
  Reader(const CsvConfig& config, const fs::path& file) : config_(config), file_(file) {}

  Table read() {
    const std::string text = read_file(file_);
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = std::min(text.find('\n', begin), text.size());
      const std::string_view line(text.data() + begin, end - begin);
      if (line.find_first_not_of(" \t\r") != std::string_view::npos) take(line, static_cast<std::int64_t>(begin));
      begin = end + 1;
    }
    if (table_.values.empty()) throw_malformed(file_, 0, "has no samples");
    table_.shape = {columns_ - 1};
    return std::move(table_);
  }

 private:
  void take(std::string_view line, std::int64_t offset) {
    std::vector<std::string_view> cells;
    for (std::size_t begin = 0; begin <= line.size();) {
      const auto end = std::min(line.find(config_.separator[0], begin), line.size());
      cells.push_back(line.substr(begin, end - begin));
      begin = end + 1;
    }
    if (columns_ == 0 && start(cells)) return;
    if (std::ssize(cells) != columns_) {
      throw_malformed(file_, offset,
                      std::to_string(cells.size()) + " columns, but the first line has " + std::to_string(columns_));
    }
    for (std::int64_t i = 0; i < columns_; ++i) {
      double value = 0;
      const auto cell = cells[static_cast<std::size_t>(i)];
      const auto at = offset + (cell.data() - line.data());
      if (!number_of(cell, value)) throw_malformed(file_, at, "\"" + std::string(cell) + "\" is no finite number");
      if (i != target_) {
        table_.values.push_back(static_cast<float>(value));
      } else if (config_.classes == 0) {
        table_.numbers.push_back(static_cast<float>(value));
      } else if (value >= 0 && value < static_cast<double>(config_.classes) && value == std::floor(value)) {
        table_.classes.push_back(static_cast<std::int64_t>(value));
      } else {
        throw_malformed(file_, at,
                        "class " + std::string(cell) + ", expected 0 to " + std::to_string(config_.classes - 1) +
                            " (dataset.classes)");
      }
    }
  }

  // Whether this first line is one of names.
  bool start(const std::vector<std::string_view>& cells) {
    columns_ = std::ssize(cells);
    double value = 0;
    const bool names = std::ranges::none_of(cells, [&](auto cell) { return number_of(cell, value); });
    target_ = columns_ - 1;
    if (!config_.target.empty()) {
      const auto named = [&](std::string_view cell) {
        return cell.substr(0, cell.find_last_not_of(" \r") + 1) == config_.target;
      };
      const auto found = names ? std::ranges::find_if(cells, named) : cells.end();
      target_ = found - cells.begin();
      const auto& text = config_.target;
      if (found == cells.end()) {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), target_);
        if (error != std::errc() || end != text.data() + text.size()) target_ = -1;
      }
    }
    if (columns_ < 2 || target_ < 0 || target_ >= columns_) {
      throw ConfigError(file_.string() + ": has " + std::to_string(columns_) + " columns separated by \"" +
                        config_.separator + "\", and dataset.target: \"" + config_.target +
                        "\" is none of them, or the only one; give its name in the first line, or its number from 0");
    }
    return names;
  }

  const CsvConfig& config_;
  fs::path file_;
  Table table_;
  std::int64_t columns_ = 0, target_ = 0;
};

Splits load_csv(const CsvConfig& config) {
  if (config.separator.size() != 1) throw ConfigError("dataset.separator: is one character");
  const auto paths = find_files({.dataset = "csv",
                                 .names = {config.train, config.test},
                                 .how_to_get = "Any files of numbers will do. To use others: set dataset.root to their "
                                               "folder, and dataset.train and dataset.test to their names."},
                                dataset_root(config.root, "csv"));
  auto train = Reader(config, paths[0]).read(), test = Reader(config, paths[1]).read();
  if (train.shape != test.shape) {
    throw DataError(paths[1].string() + ": has " + std::to_string(test.shape[0] + 1) + " columns, but " +
                    paths[0].string() + " has " + std::to_string(train.shape[0] + 1));
  }
  return {.train = make_table(std::move(train), config.classes), .test = make_table(std::move(test), config.classes)};
}

const bool registered =
    Datasets::global().add<CsvConfig>("csv", "columns of numbers, one of them the target", load_csv);

}  // namespace
}  // namespace phalanx
