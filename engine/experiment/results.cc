// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/results.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/expectation.h"
#include "engine/experiment/summary.h"
#include "engine/hooks/unreadable_samples.h"
#include "engine/html/run_page.h"
#include "framework/base/console.h"
#include "framework/base/files.h"
#include "framework/base/storage/safetensors.h"
#include "framework/base/text.h"
#include "framework/observe/best_effort.h"
#include "framework/observe/times/time_table.h"

namespace phalanx {
namespace {

std::string metrics_text(const Metrics& metrics) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min<std::size_t>(metrics.size(), 6); ++i) {
    words.push_back(format_text("%s %.4g", metrics[i].first.c_str(), metrics[i].second));
  }
  if (metrics.size() > words.size()) words.push_back(format_text("%zu more", metrics.size() - words.size()));
  return join(words, ", ");
}

// Shows the final metrics as progress does.
void show_metrics(const ExperimentResult& result) {
  for (const auto& [split, metrics] : {std::pair("validation", result.validation), std::pair("test", result.test)}) {
    if (!metrics.empty()) standard_output().write(std::string(split) + ": " + metrics_text(metrics) + "\n");
  }
}

// Names the expectations that the run does not check.
void name_unchecked(const ExpectConfig& expect) {
  const auto left = left_to_regress(expect);
  if (left.empty()) return;
  standard_output().write("Left to tools:regress, which compares runs: " + join(left, ", ") + "\n");
}

void show_times(const StepTimes& times) {
  Console& console = standard_output();
  if (times.steps > 0) console.write(to_time_table(times, console.columns()));
}

}  // namespace

void write_results(const ExperimentConfig& config, const ExperimentContext& context, const ExperimentResult& result,
                   const RunTimes& times, const NamedTensors& weights) {
  if (context.world->rank() != 0) return;
  // The other ranks wait meanwhile.
  const Seconds patience(std::min(config.checkpoint.retry, config.framework.timeout / 2));
  if (config.checkpoint.final_weights) {
    insist([&] { save_safetensors(context.folder.weights(), weights); }, patience);
  }
  insist([&] { write_atomically(context.folder.summary(), summary_text(config, context, result, times)); }, patience);
  if (config.watch.report) {
    BestEffort().attempt([&] { write_run_page(context.folder); },
                         "the run itself is not affected; tools:report can write the page later");
  }
  if (result.unreadable) warn_of_skipped_samples(*result.unreadable);
  if (!result.early_stop.empty()) standard_output().write("Ended early: " + result.early_stop + "\n");
  if (!result.stopped) name_unchecked(config.expect);
  if (config.watch.progress) {
    show_times(times.step_times());
  } else {
    show_metrics(result);
  }
}

}  // namespace phalanx
