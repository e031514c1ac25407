// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/base/text.h"

namespace phalanx::bench_train {
namespace {

using Cells = std::vector<std::string>;

std::string times(const std::optional<double>& ratio) { return ratio ? format_text("%.3f", *ratio) : "-"; }

Cells cells_of(const Row& row, bool loss) {
  Cells cells{row.workload,
              row.system,
              format_text(row.samples_per_second < 1000 ? "%.1f" : "%.0f", row.samples_per_second),
              format_text(row.p10 < 1000 ? "%.1f" : "%.0f", row.p10),
              format_text(row.p90 < 1000 ? "%.1f" : "%.0f", row.p90),
              format_text("%.2f", row.step_ms),
              times(row.ratio),
              times(row.ratio_to_limit),
              times(row.of_peak)};
  if (loss) {
    cells.push_back(row.seconds_to_loss ? format_text("%.1f", *row.seconds_to_loss) : "-");
    cells.push_back(row.steps_to_loss ? std::to_string(*row.steps_to_loss) : "-");
  }
  return cells;
}

std::string lines(const std::vector<Cells>& table, bool markdown) {
  std::vector<std::size_t> widths(table.front().size());
  for (const auto& cells : table) {
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string text;
  for (std::size_t line = 0; line < table.size(); ++line) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const auto& cell = table[line][i];
      const std::string space(widths[i] - cell.size(), ' ');
      text += markdown ? "| " + cell + " " : (i < 2 ? cell + space : space + cell) + "  ";
    }
    text += markdown ? "|\n" : "\n";
    if (!markdown || line > 0) continue;
    for (std::size_t i = 0; i < widths.size(); ++i) text += "|---";
    text += "|\n";
  }
  return text;
}

std::string sentence(const Machine& machine) {
  return (machine.processor.empty() ? "unknown processor" : machine.processor) + ", " + machine.vectors +
         format_text(": %.1f GFLOP/s of matrix products on one core", machine.matrix_peak / 1e9);
}

std::string sentence(const HiddenShare& share) {
  std::string text = format_text("overlapped hides %.0f %% of the communication", share.of_communication * 100);
  if (share.of_waiting) text += format_text(", %.0f %% of its waiting part", *share.of_waiting * 100);
  return text;
}

template <class Value>
nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

}  // namespace

std::string to_table(const std::vector<Row>& rows, const Machine& machine, const std::string& base, bool markdown) {
  const bool loss = std::ranges::any_of(rows, [](const Row& row) { return row.seconds_to_loss.has_value(); });
  std::vector<Cells> table{{"workload", "system", "samples/s", "p10", "p90", "step ms",
                            base.empty() ? "ratio" : "of " + base, "of limit", "of peak"}};
  if (loss) table.front().insert(table.front().end(), {"s to loss", "steps"});
  for (const auto& row : rows) table.push_back(cells_of(row, loss));
  std::string text = sentence(machine) + (markdown ? "\n\n" : "\n") + lines(table, markdown);
  for (const auto& row : rows) {
    if (row.hidden) text += row.workload + ": " + sentence(*row.hidden) + "\n";
  }
  return text;
}

std::string to_json(const std::vector<Row>& rows, const Machine& machine, const std::string& base,
                    const std::string& link) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const auto& row : rows) {
    list.push_back({{"workload", row.workload},
                    {"system", row.system},
                    {"ranks", row.ranks},
                    {"kernels", row.kernels.empty() ? Json() : Json(row.kernels)},
                    {"samples_per_second", row.samples_per_second},
                    {"p10", row.p10},
                    {"p90", row.p90},
                    {"step_ms", row.step_ms},
                    {"backward_ms", or_null(row.backward_ms)},
                    {"busy_ms", row.busy_ms},
                    {"ratio", or_null(row.ratio)},
                    {"ratio_to_no_communication", or_null(row.ratio_to_limit)},
                    {"operations", or_null(row.operations)},
                    {"of_peak", or_null(row.of_peak)},
                    {"hidden", row.hidden ? Json(row.hidden->of_communication) : Json()},
                    {"hidden_of_waiting", row.hidden ? or_null(row.hidden->of_waiting) : Json()},
                    {"seconds_to_loss", or_null(row.seconds_to_loss)},
                    {"steps_to_loss", or_null(row.steps_to_loss)}});
    if (!row.losses.empty()) list.back()["losses"] = row.losses;
  }
  return Json{{"base", base},
              {"link", link},
              {"processor", machine.processor},
              {"vectors", machine.vectors},
              {"matrix_peak", machine.matrix_peak},
              {"rows", list}}
             .dump(2) +
         "\n";
}

}  // namespace phalanx::bench_train
