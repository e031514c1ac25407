// SPDX-License-Identifier: Apache-2.0
// Trains the same models with several systems, interleaved: bench_train --workload mlp,lenet --against ddp --ranks 2
#include <cstdio>
#include <iostream>
#include <string_view>
#include <vector>

#include "framework/base/files.h"
#include "framework/kernels/kernels.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "models/matrix_peak.h"
#include "tools/bench/python.h"
#include "tools/bench_train/cpp/library_loop.h"
#include "tools/bench_train/measure.h"
#include "tools/bench_train/options.h"
#include "tools/bench_train/rank.h"
#include "tools/bench_train/table.h"
#include "tools/command/command.h"

namespace phalanx::bench_train {
namespace {

// Passed by the program to itself, see rank_processes.h.
constexpr std::string_view kRunAsRank = "--run_as_rank=", kRunLoop = "--run_loop=";

int compare(const Arguments& arguments) {
  Options options = parse_options(arguments);
  if (options.uses(Framework::kTorch)) options.python = bench::python_with_torch(options.python, "--against ddp");
  if (options.uses(Framework::kJax)) options.jax_python = bench::python_with_jax(options.jax_python, "--against jax");
  kernels::use_kernels(kernels::kAuto);
  const auto processor = kernels::this_processor();
  const Machine machine{
      .processor = processor.name, .vectors = processor.vectors, .matrix_peak = measure_matrix_peak()};
  const Hosts hosts = options.link.empty() ? Hosts() : Hosts(options.link);
  // Called after each workload, so that a later failure does not lose earlier results.
  const auto keep = [&](const std::vector<Row>& rows) {
    if (!options.json.empty()) write_atomically(options.json, to_json(rows, machine, options.base, options.link));
  };
  keep({});  // fails now rather than after the measurement
  const auto [rows, failures] = measure(options, hosts, machine.matrix_peak, keep);
  if (!rows.empty()) std::fputs(to_table(rows, machine, options.base, options.markdown).c_str(), stdout);
  for (const auto& failure : failures) std::fprintf(stderr, "bench_train: %s\n", failure.c_str());
  return failures.empty() ? kDone : kFailed;
}

int run(const Arguments& arguments) {
  const std::string_view first = arguments.words.size() == 1 ? arguments.words[0] : std::string_view();
  if (first.starts_with(kRunAsRank)) run_as_rank(read_job(std::string(first.substr(kRunAsRank.size()))));
  if (!first.starts_with(kRunLoop)) return compare(arguments);
  serve_with_library(read_loop_job(std::string(first.substr(kRunLoop.size()))), std::cin, std::cout);
  return kDone;
}

const bool bench_train_registered = register_command(
    {"bench_train", "trains the same models with several systems in turns", CommandGroup::kMachine, run});

}  // namespace
}  // namespace phalanx::bench_train
