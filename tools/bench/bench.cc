// SPDX-License-Identifier: Apache-2.0
// Measures collectives of backends and peers side by side: bench --op all_reduce --ranks 2 --backends shm,mpi
#include <ATen/Parallel.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/cores.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/log.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/store/rendezvous.h"
#include "launch/exit_status.h"
#include "launch/local/rank_threads.h"
#include "launch/program.h"
#include "launch/start_ranks.h"
#include "tools/bench/command_line.h"
#include "tools/bench/connect.h"
#include "tools/bench/flag_words.h"
#include "tools/bench/measure.h"
#include "tools/bench/options.h"
#include "tools/bench/peer_library.h"
#include "tools/bench/plot.h"
#include "tools/bench/python.h"
#include "tools/bench/table.h"
#include "tools/command/command.h"

namespace phalanx::bench {
namespace {

constexpr Seconds kRendezvousTimeout{60};

// Binds this thread, and the threads that it starts, to one of the cores that it may use.
void bind(int local_rank) {
  const auto cores = allowed_cores();
  if (cores.empty()) return;
  const int core = cores[static_cast<std::size_t>(local_rank) % cores.size()];
  if (!stay_on_cores({core})) throw Error("--bind core: cannot bind to core " + std::to_string(core));
}

void report(const Options& options, const Result& result) {
  std::fputs(to_table(result).c_str(), stdout);
  if (!options.plot.empty()) write_atomically(options.plot, to_svg(result));
}

void run_as_rank(const Options& options, const RankInfo& rank_info, StorePtr store) {
  at::set_num_threads(1);
  if (options.bind) bind(rank_info.local_rank);
  const Connected connected = connect_subjects(options, rank_info, store);
  // Rank 0 leaves the store last: see connect_all() of launch/rank/connect.h.
  if (rank_info.rank != 0) store.reset();
  // A measurement that is interrupted keeps the rows of the operations before.
  const Result result = measure(options, connected.subjects, *connected.world, [&](const Result& so_far) {
    if (rank_info.rank == 0 && !options.json.empty()) write_atomically(options.json, to_json(so_far));
  });
  if (rank_info.rank == 0) report(options, result);
}

int run_as_process(const Options& options, const LaunchEnvironment& launched) {
  configure_log({.stderr_threshold = LogLevel::kNone});  // failures are reported, once for all ranks
  const auto& rank_info = launched.rank_info;
  StorePtr store = rank_info.size == 1 ? make_hash_store(kRendezvousTimeout) : nullptr;
  if (!store && !launched.rendezvous.empty()) store = rendezvous(launched.rendezvous, kRendezvousTimeout).store;
  run_as_rank(options, rank_info, std::move(store));
  return kDone;
}

int run_as_threads(const Options& options) {
  const StorePtr store = make_hash_store(kRendezvousTimeout);
  run_rank_threads(options.ranks, [&](const RankInfo& rank_info) { run_as_rank(options, rank_info, store); });
  return kDone;
}

void check_backends(const Options& options) {
  auto known = Backends::global().names();
  known.emplace_back("openmpi");
  for (const auto& name : options.backends) check_word("backends", name, known);
}

// Chooses the interpreter for PyTorch. If this process starts the ranks, it also finds an interpreter for them.
void choose_python(Options& options, RankStart& start, bool launched) {
  if (!options.uses("torch")) return;
  if (!launched) {
    options.python = python_with_torch(options.python, "--against torch");
    start.command.push_back("--python=" + options.python);
  } else if (options.python.empty()) {
    throw ConfigError("--against torch: if a launcher starts the ranks, name an interpreter with --python");
  }
}

// Installs the libraries that are measured by separate programs. Ranks that a launcher starts would install the same
// one at the same time, so they only look for it.
void install_peers(const Options& options, bool launched) {
  for (const auto& name : options.against) {
    const PeerLibrary* const library = find_peer_library(name);
    if (library == nullptr) continue;
    if (launched) {
      require_peer_library(*library, "--against " + name);
    } else {
      install_peer_library(*library, "--against " + name);
    }
  }
}

int run(const Arguments& arguments) {
  RankStart start{.command = arguments.command_line()};
  Options options = parse_options(arguments);
  check_backends(options);
  const bool launched = detect_launch_environment().has_value();
  choose_python(options, start, launched);
  install_peers(options, launched);
  if (!launched && backend_traits(options.backends.front()).threads) return run_as_threads(options);
  start.ranks = options.ranks;
  start.with_mpirun = options.uses("openmpi") ||
                      std::ranges::any_of(options.backends, [](const auto& name) { return backend_traits(name).mpi; });
  return start_ranks(start, [&](const LaunchEnvironment& rank) { return run_as_process(options, rank); });
}

const bool bench_registered = register_command(
    {"bench", "measures collectives of several backends and libraries side by side", CommandGroup::kMachine, run});

}  // namespace
}  // namespace phalanx::bench
