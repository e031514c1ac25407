// SPDX-License-Identifier: Apache-2.0
// Compares our CPU kernels with LibTorch's: bench_kernels --json kernels.json
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/quantile.h"
#include "framework/base/text.h"
#include "framework/kernels/kernels.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/bench/child.h"
#include "tools/bench_kernels/operation.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"

namespace phalanx::bench_kernels {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

struct Options {
  std::string json{};
  std::string only{};
  int rounds = 15;
  double budget_ms = 10;
  std::string as{};
};

Options parse(const Arguments& arguments) {
  Options options;
  Flags flags(arguments, {"--json kernels.json"});
  flags.add("json", &options.json, "JSON file for the rows");
  flags.add("only", &options.only, "measure operations whose name contains this");
  flags.add("rounds", &options.rounds, "samples of each operation with each choice of kernels");
  flags.add("budget_ms", &options.budget_ms, "approximate time of one sample");
  flags.add("as", &options.as,
            "used by the program itself: measure the operations on standard input with this choice of kernels");
  refuse(flags.parse(arguments.words));
  if (options.rounds < 1) throw ConfigError("--rounds: must be at least 1");
  if (!(options.budget_ms > 0)) throw ConfigError("--budget_ms: must be above 0");
  return options;
}

constexpr Seconds kPatience{60};  // for one sample

double microseconds(const std::function<void()>& call, std::int64_t calls) {
  const auto start = Clock::now();
  for (std::int64_t i = 0; i < calls; ++i) call();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / static_cast<double>(calls);
}

// Answers each line, which is the number of an operation, with the time of a call in microseconds. MKL decides once per
// process which code it uses, so each choice of kernels has a process.
int measure(const Options& options) {
  kernels::use_kernels(options.as);
  at::set_num_threads(1);
  const at::NoGradGuard no_grad;
  const auto all = operations();
  std::size_t current = all.size();
  std::function<void()> call;
  std::int64_t calls = 1;
  for (std::string line; std::getline(std::cin, line);) {
    const std::size_t number = std::stoul(line);
    if (number != current) {
      call = all.at(number).make();
      current = number;
      call();
      const double once = microseconds(call, 1);
      calls = std::max<std::int64_t>(1, static_cast<std::int64_t>(options.budget_ms * 1e3 / std::max(once, 0.1)));
    }
    std::cout << microseconds(call, calls) << std::endl;
  }
  return kDone;
}

struct Row {
  Operation operation;
  double libtorch_us;
  double auto_us;
};

std::string gigaflops(double operations, double us) {
  return operations == 0 ? "" : format_text("%.1f", operations / us / 1e3);
}

void print(const Row& row) {
  std::printf("%-28s %-28s %10.1f %10.1f %7.2fx %9s %9s\n", row.operation.name.c_str(), row.operation.shape.c_str(),
              row.libtorch_us, row.auto_us, row.libtorch_us / row.auto_us,
              gigaflops(row.operation.operations, row.libtorch_us).c_str(),
              gigaflops(row.operation.operations, row.auto_us).c_str());
  std::fflush(stdout);
}

Json to_json(const Row& row) {
  return {{"operation", row.operation.name},
          {"shape", row.operation.shape},
          {"floating_point_operations", row.operation.operations},
          {"libtorch_us", row.libtorch_us},
          {"auto_us", row.auto_us}};
}

double sample(bench::Child& child, std::size_t number) {
  child.send(std::to_string(number));
  return std::stod(child.receive(kPatience));
}

Row measure_in_turns(bench::Child& libtorch, bench::Child& ours, std::size_t number, const Operation& operation,
                     int rounds) {
  std::vector<double> theirs_us, ours_us;
  for (int round = 0; round < rounds; ++round) {
    const bool theirs_first = round % 2 == 0;
    if (theirs_first) theirs_us.push_back(sample(libtorch, number));
    ours_us.push_back(sample(ours, number));
    if (!theirs_first) theirs_us.push_back(sample(libtorch, number));
  }
  return {operation, median(theirs_us), quantile(ours_us, 0.5)};
}

int run(const Arguments& arguments) {
  const Options options = parse(arguments);
  if (!options.as.empty()) return measure(options);
  const auto processor = kernels::this_processor();
  const auto child = [&](const char* choice) {
    auto command = arguments.program;
    command.push_back(std::string("--as=") + choice);
    command.push_back(format_text("--budget_ms=%g", options.budget_ms));
    return command;
  };
  bench::Child libtorch(child(kernels::kLibTorch)), ours(child(kernels::kAuto));
  std::printf("%s, %s, one thread; medians of %d samples\n", processor.name.c_str(), processor.vectors.c_str(),
              options.rounds);
  std::printf("%-28s %-28s %10s %10s %8s %9s %9s\n", "operation", "shape", "libtorch us", "auto us", "", "GF/s",
              "GF/s");
  const auto all = operations();
  Json rows = Json::array();
  for (std::size_t number = 0; number < all.size(); ++number) {
    if (all[number].name.find(options.only) == std::string::npos) continue;
    const Row row = measure_in_turns(libtorch, ours, number, all[number], options.rounds);
    print(row);
    rows.push_back(to_json(row));
  }
  if (rows.empty()) throw ConfigError("--only: no operation has \"" + options.only + "\" in its name");
  if (!options.json.empty()) {
    const Json document{{"processor", processor.name}, {"vectors", processor.vectors}, {"rows", rows}};
    write_atomically(options.json, document.dump(2) + "\n");
  }
  return kDone;
}

const bool bench_kernels_registered = register_command(
    {"bench_kernels", "compares Phalanx's kernels for the CPU (kernels: auto) with LibTorch's, with one thread",
     CommandGroup::kMachine, run});

}  // namespace
}  // namespace phalanx::bench_kernels
