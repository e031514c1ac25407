// SPDX-License-Identifier: Apache-2.0
// Answers doctor's questions from a program that is linked with all of Phalanx: probe libraries, or probe backend NAME.
// Prints one JSON document. It is not a part of the program doctor, which can thus report why it does not start.
#include <ATen/Parallel.h>

#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/collectives/algorithm.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/store/rendezvous.h"
#include "framework/kernels/kernels.h"
#include "launch/exit_status.h"
#include "launch/local/rank_threads.h"
#include "launch/program.h"
#include "launch/start_ranks.h"
#include "models/matrix_peak.h"
#include "tools/bench/measure.h"
#include "tools/command/command.h"
#include "tools/doctor/libraries.h"
#include "tools/doctor/operations.h"

namespace phalanx::doctor {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRanks = 2;
constexpr Seconds kTimeout{10};

Json describe_algorithms() {
  Json all = Json::object();
  for (int number = 0; number <= static_cast<int>(Op::kCustom); ++number) {
    const Op op = static_cast<Op>(number);
    for (const auto* algorithm : Algorithms::global().of(op)) {
      all[std::string(to_string(op))].push_back({{"name", algorithm->name}, {"about", algorithm->about}});
    }
  }
  return all;
}

Json kernel_table() {
  const auto processor = kernels::this_processor();
  Json rows = Json::array();
  for (const auto& row : kernels::make_plan(kernels::kAuto, processor).table()) {
    rows.push_back(
        {{"operators", row.operators}, {"tensors", row.tensors}, {"code", row.code}, {"reason", row.reason}});
  }
  kernels::use_kernels(kernels::kAuto);
  return {{"vectors", processor.vectors}, {"matrix_peak", measure_matrix_peak()}, {"table", rows}};
}

// Names the backend that `backend: auto` chooses by where the ranks are.
Json automatic_backends() {
  return {{"one rank", automatic_backend(WorldKind::kOneRank)},
          {"ranks of one host", automatic_backend(WorldKind::kOneHost)},
          {"ranks of several hosts", automatic_backend(WorldKind::kHosts)}};
}

int print_libraries() {
  Json list = Json::array();
  for (const auto& library : libraries()) {
    list.push_back(
        {{"name", library.name}, {"linked", library.linked}, {"loaded", library.loaded}, {"path", library.path}});
  }
  Json backends;
  for (const auto& name : Backends::global().names()) {
    backends.push_back({{"name", name}, {"device", backend_traits(name).device}});
  }
  const Json all{{"libraries", list},
                 {"cuda_aware_mpi", cuda_aware_mpi()},
                 {"cuda_devices", cuda_devices()},
                 {"torch_build", torch_build()},
                 {"kernels", kernel_table()},
                 {"backends", backends},
                 {"automatic", automatic_backends()},
                 {"algorithms", describe_algorithms()}};
  std::printf("%s\n", all.dump().c_str());
  return kDone;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string run_check(const OperationCheck& operation, Communicator& world) {
  try {
    return operation.passes(world) ? "ok" : "the result is wrong";
  } catch (const std::exception& error) {
    return first_line(error.what());
  }
}

// Exchanges the results of each operation through the store, which works even if the backend does not. Rank 0 receives
// the first complaint of any rank.
Json run_checks(Communicator& world, Store& store) {
  Json all = Json::object();
  for (const auto& operation : operations()) {
    store.set("doctor/" + operation.name + "/" + std::to_string(world.rank()), run_check(operation, world));
    std::string worst = "ok";
    for (int rank = 0; rank < world.size(); ++rank) {
      const std::string said = store.get("doctor/" + operation.name + "/" + std::to_string(rank));
      if (worst == "ok" && said != "ok") worst = "rank " + std::to_string(rank) + ": " + said;
    }
    all[operation.name] = worst;
  }
  return all;
}

// Measures the round trip of the smallest message and the bandwidth of all_reduce with 16 MB, in the memory that is
// fastest for the backend.
Json measure_link(const std::string& backend, const CommunicatorPtr& world) {
  const auto median = [&](const std::string& op, std::int64_t bytes) {
    bench::Options options;
    options.ops = {op};
    options.bytes = {bytes};
    options.memories = {"registered"};
    options.rounds = 9;
    options.budget_ms = 5;
    bench::Subjects subjects;
    subjects.push_back(bench::make_backend_subject(backend, world, {"native"}));
    return bench::measure(options, subjects, *world).rows.at(0);
  };
  return {{"round_trip_us", 2 * median("send_recv", 4).p50_us},
          {"message_gb_s", median("send_recv", 16 << 20).bus_gb_s},
          {"all_reduce_gb_s", median("all_reduce", 16 << 20).bus_gb_s}};
}

void run_as_rank(const std::string& backend, const RankInfo& rank_info, const StorePtr& store) {
  at::set_num_threads(1);
  const auto world = Backends::Choice(backend).make({.rank_info = rank_info,
                                                     .store = make_prefix_store("doctor/backend", store),
                                                     .timeout = kTimeout,
                                                     .progress_thread = {}});
  Json all{{"operations", run_checks(*world, *store)}};
  bool well = true;
  for (const auto& said : all["operations"]) well = well && said == "ok";
  if (well) all["link"] = measure_link(backend, world);
  if (rank_info.rank == 0) std::printf("%s\n", all.dump().c_str());
}

int run_as_process(const std::string& backend, const LaunchEnvironment& launched) {
  configure_log({.stderr_threshold = LogLevel::kNone});
  run_as_rank(backend, launched.rank_info, rendezvous(launched.rendezvous, kTimeout).store);
  std::fflush(stdout);
  return kDone;
}

int run_as_threads(const std::string& backend) {
  const StorePtr store = make_hash_store(kTimeout);
  run_rank_threads(kRanks, [&](const RankInfo& rank_info) { run_as_rank(backend, rank_info, store); });
  return kDone;
}

int probe_backend(const std::string& backend, const std::vector<std::string>& command) {
  const auto traits = backend_traits(backend);
  if (traits.threads) return run_as_threads(backend);
  return start_ranks({.ranks = kRanks, .with_mpirun = traits.mpi, .command = command},
                     [&](const LaunchEnvironment& launched) { return run_as_process(backend, launched); });
}

int run(const Arguments& arguments) {
  const auto& words = arguments.words;
  if (words.size() == 1 && words[0] == "libraries") return print_libraries();
  if (words.size() == 2 && words[0] == "backend") return probe_backend(words[1], arguments.command_line());
  throw ConfigError("probe is a part of doctor; use it as: probe libraries, or probe backend NAME");
}

const bool probe_registered =
    register_command({"probe", "answers the questions of doctor", CommandGroup::kHidden, run});

}  // namespace
}  // namespace phalanx::doctor
