// SPDX-License-Identifier: Apache-2.0
// Compares what runs have reached: report runs/a runs/b --output compare.html
#include <gflags/gflags.h>

#include <cstdio>
#include <string>
#include <vector>

#include "engine/watch/html/chart.h"
#include "engine/watch/html/run_page.h"
#include "engine/watch/html/run_record.h"
#include "engine/watch/run_folder.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/printable.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/flags/parse_flags.h"
#include "tools/report/comparison.h"
#include "tools/report/comparison_page.h"

DEFINE_string(output, "", "HTML file for the comparison of several runs or the report of one (its report.html)");

namespace phalanx {
namespace {

std::vector<RunRecord> read_runs(const std::vector<std::string>& folders) {
  if (folders.empty()) throw ConfigError("no run: report RUN... [--output FILE] (see --help)");
  if (folders.size() > kMostSeries) {
    throw ConfigError("at most " + std::to_string(kMostSeries) + " runs can be compared at a time");
  }
  std::vector<RunRecord> runs;
  for (const auto& folder : folders) runs.push_back(read_run(RunFolder(folder)));
  return runs;
}

void print(const std::vector<RunRecord>& runs) {
  print_text("%s", to_text("", compare_figures(runs)).c_str());
  const auto times = compare_step_time(runs);
  if (times.size() > 1) print_text("\n%s", to_text("", times).c_str());
  if (runs.size() == 1) return;
  const auto configs = compare_configs(runs);
  print_text("\n%s", configs.size() > 1 ? to_text("", configs).c_str() : "The configs are the same.\n");
}

int run(int argc, char** argv) {
  const Program program{.purpose = "compares the results of runs\n\n  report RUN... [--output FILE]",
                        .files = "tools/report/"};
  const auto runs = read_runs(parse_flags(program, argc, argv));
  print(runs);
  std::string path = FLAGS_output;
  if (runs.size() == 1) {
    if (path.empty()) path = RunFolder(runs[0].path).report();
    write_atomically(path, to_run_page(runs[0]));
  } else if (!path.empty()) {
    write_atomically(path, to_comparison_page(runs));
  }
  if (!path.empty()) std::printf("\nHTML page: %s\n", path.c_str());
  return kDone;
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) {
  return phalanx::run_main([&] { return phalanx::run(argc, argv); });
}
