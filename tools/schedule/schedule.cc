// SPDX-License-Identifier: Apache-2.0
// Shows the order in which the ranks of a pipeline work: schedule --name 1f1b --ranks 4 --micro_batches 8
#include "framework/partition/pipeline/schedule.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/partition/pipeline/timeline.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/schedule/drawing.h"

namespace phalanx {
namespace {

using pipeline::Costs;
using pipeline::ScheduleOptions;

struct Options {
  std::string name = "all";
  int ranks = 4;
  int micro_batches = 8;
  int stages_per_rank = 1;
  std::string costs = "1,1,1,0";
  int memory_limit = 0;
  int width = 120;
  std::string svg{};
  std::string json{};
};

Options parse(const Arguments& arguments) {
  Options options;
  Flags flags(arguments,
              {"--ranks 4 --micro_batches 8", "--name zero_bubble --ranks 4 --micro_batches 8 --svg schedule.svg"});
  flags.add("name", &options.name, "gpipe, 1f1b, interleaved, zb_h1, zero_bubble, dualpipe, or all, to compare them");
  flags.add("ranks", &options.ranks, "ranks of the pipeline");
  flags.add("micro_batches", &options.micro_batches, "parts of a batch");
  flags.add("stages_per_rank", &options.stages_per_rank, "stages on each rank, for interleaved");
  flags.add("costs", &options.costs,
            "times of a forward, of the gradients of the input and of the weights, and of a transfer to another rank");
  flags.add("memory_limit", &options.memory_limit,
            "micro-batches whose activations a rank may hold, for zero_bubble; 0: ranks");
  flags.add("width", &options.width, "characters in a line");
  flags.add("svg", &options.svg, "SVG file for a picture");
  flags.add("json", &options.json, "JSON file for the actions and their times");
  refuse(flags.parse(arguments.words));
  return options;
}

Costs parse_costs(const std::string& text) {
  std::istringstream words(text);
  std::vector<double> numbers;
  for (std::string word; std::getline(words, word, ',');) {
    char* end = nullptr;
    numbers.push_back(std::strtod(word.c_str(), &end));
    if (word.empty() || *end != '\0' || !(numbers.back() >= 0 && numbers.back() < 1e6)) numbers.clear();
    if (numbers.empty()) break;
  }
  if ((numbers.size() != 3 && numbers.size() != 4) || numbers[0] <= 0 || numbers[1] <= 0) {
    throw ConfigError("--costs: \"" + text + "\" is not three or four numbers such as 1,1,1,0, the first two above 0");
  }
  return {numbers[0], numbers[1], numbers[2], numbers.size() == 4 ? numbers[3] : 0};
}

ScheduleOptions schedule_options(const Options& options) {
  for (const auto& [flag, value] :
       {std::pair("ranks", options.ranks), std::pair("micro_batches", options.micro_batches),
        std::pair("stages_per_rank", options.stages_per_rank), std::pair("width", options.width)}) {
    if (value < 1) throw ConfigError(std::string("--") + flag + ": must be at least 1, got " + std::to_string(value));
  }
  if (options.ranks > 64 || options.micro_batches > 1024) {
    throw ConfigError("--ranks and --micro_batches: at most 64 and 1024 can be drawn");
  }
  return {.ranks = options.ranks,
          .stages_per_rank = options.stages_per_rank,
          .micro_batches = options.micro_batches,
          .costs = parse_costs(options.costs),
          .memory_limit = options.memory_limit};
}

double most(const std::vector<double>& live) { return *std::ranges::max_element(live); }

void compare(const ScheduleOptions& options) {
  std::printf("%-12s %10s %14s %20s %12s\n", "schedule", "bubble", "without stop", "activations (most)", "length");
  for (const auto& name : pipeline::schedule_names()) {
    ScheduleOptions own = options;
    if (name != "interleaved") own.stages_per_rank = 1;
    if (name != "zero_bubble") own.memory_limit = 0;
    // With interleaved, a rank has the same layers as several shorter stages.
    Costs costs = options.costs;
    for (double* cost : {&costs.forward, &costs.input_gradient, &costs.weight_gradient}) *cost /= own.stages_per_rank;
    own.costs = costs;
    try {
      const auto timeline = simulate(make_schedule(name, own), costs);
      std::printf("%-12s %8.1f %% %12.1f %% %20.1f %12.4g\n", name.c_str(), 100 * timeline.bubble,
                  100 * timeline.bubble_without_stop, most(timeline.live), timeline.length);
    } catch (const ConfigError& error) {
      std::printf("%-12s %s\n", name.c_str(), error.what());
    }
  }
}

void show(const pipeline::Schedule& schedule, const pipeline::Timeline& timeline, const Costs& costs, int width) {
  std::printf("%s\n", to_text(schedule, timeline, width).c_str());
  std::printf("F forward, B gradient of the input, W gradient of the weights, D both; then the micro-batch\n");
  std::printf("bubble          %.1f %% of the step", 100 * timeline.bubble);
  const bool equal = costs.forward == costs.input_gradient && costs.forward == costs.weight_gradient;
  const double known = equal && costs.transfer == 0 ? pipeline::known_bubble(schedule) : -1;
  if (known >= 0) std::printf(" (%.1f %% by formula)", 100 * known);
  std::printf("\nwithout a stop  %.1f %%, if ranks begin the next step as soon as they have ended this one\n",
              100 * timeline.bubble_without_stop);
  std::printf("activations    ");
  for (const double live : timeline.live) std::printf(" %.4g", live);
  std::printf(" micro-batches at most, by rank\n");
}

void write(const std::string& flag, const std::string& text) {
  if (flag.empty()) return;
  write_atomically(flag, text);
}

int run(const Arguments& arguments) {
  const Options options = parse(arguments);
  const auto all = schedule_options(options);
  if (options.name == "all") {
    if (!options.svg.empty() || !options.json.empty())
      throw ConfigError("--svg, --json: name one schedule with --name");
    compare(all);
    return kDone;
  }
  const auto schedule = make_schedule(options.name, all);
  const auto timeline = simulate(schedule, all.costs);
  show(schedule, timeline, all.costs, options.width);
  write(options.svg, to_svg(schedule, timeline));
  write(options.json, to_json(schedule, timeline));
  return kDone;
}

const bool schedule_registered =
    register_command({"schedule", "shows in which order the ranks of a pipeline work, and how long they wait",
                      CommandGroup::kPlanning, run});

}  // namespace
}  // namespace phalanx
