// SPDX-License-Identifier: Apache-2.0
// Compares what runs have reached: report runs/a runs/b --output compare.html
// Or draws a picture that doctor --json has written: report picture.json

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "engine/html/chart.h"
#include "engine/html/hang_timeline.h"
#include "engine/html/run_page.h"
#include "engine/html/run_record.h"
#include "engine/run_folder.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/printable.h"
#include "framework/observe/hang/explain.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/report/comparison.h"
#include "tools/report/comparison_page.h"

namespace phalanx {
namespace {

std::vector<RunRecord> read_runs(const std::string& command, const std::vector<std::string>& folders) {
  if (folders.empty()) throw ConfigError("no run: " + command + " RUN... [--output FILE] (see --help)");
  if (folders.size() > kMaxSeries) {
    throw ConfigError("at most " + std::to_string(kMaxSeries) + " runs can be compared at a time");
  }
  std::vector<RunRecord> runs;
  for (const auto& folder : folders) runs.push_back(read_run(RunFolder(folder)));
  return runs;
}

// Draws a picture that belongs to no run folder.
void draw_picture(const std::string& file, const std::string& path) {
  const JobPicture picture = job_picture_from_json(read_file(file), file);
  print_text("%s\n", explain(picture).c_str());
  write_atomically(path, to_hang_page(picture, file));
}

void print(const std::vector<RunRecord>& runs) {
  if (runs.size() == 1 && runs[0].hang && !runs[0].summary) print_text("%s\n\n", explain(*runs[0].hang).c_str());
  print_text("%s", to_text("", compare_key_metrics(runs)).c_str());
  const auto times = compare_step_time(runs);
  if (times.size() > 1) print_text("\n%s", to_text("", times).c_str());
  if (runs.size() == 1) return;
  const auto configs = compare_configs(runs);
  print_text("\n%s", configs.size() > 1 ? to_text("", configs).c_str() : "The configs are the same.\n");
}

int run(const Arguments& arguments) {
  std::string path;
  Flags flags(arguments, {"RUN... [--output FILE]", "PICTURE.json [--output FILE]"});
  flags.add("output", &path, "HTML file for the comparison of several runs or the report of one (its report.html)");
  const auto words = flags.parse(arguments.words);
  if (std::error_code none; words.size() == 1 && std::filesystem::is_regular_file(words[0], none)) {
    if (path.empty()) path = std::filesystem::path(words[0]).replace_extension(".html").string();
    draw_picture(words[0], path);
    std::printf("\nHTML page: %s\n", path.c_str());
    return kDone;
  }
  const auto runs = read_runs(arguments.name, words);
  print(runs);
  if (runs.size() == 1) {
    if (path.empty()) path = RunFolder(runs[0].path).report();
    write_atomically(path, to_run_page(runs[0]));
  } else if (!path.empty()) {
    write_atomically(path, to_comparison_page(runs));
  }
  if (!path.empty()) std::printf("\nHTML page: %s\n", path.c_str());
  return kDone;
}

const bool report_registered = register_command({"report", "compares the results of runs", CommandGroup::kModels, run});

}  // namespace
}  // namespace phalanx
