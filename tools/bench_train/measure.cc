// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/measure.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <random>

#include "datasets/dataset.h"
#include "framework/base/config/config.h"
#include "framework/base/cores.h"
#include "framework/base/error.h"
#include "framework/base/quantile.h"
#include "launch/temporary_folder.h"
#include "tools/bench_train/rank_processes.h"
#include "tools/bench_train/time_to_loss.h"
#include "tools/bench_train/workload.h"

namespace phalanx::bench_train {
namespace {

constexpr const char* kLimit = "no_communication";
constexpr const char* kCppLimit = "cpp_no_communication";  // of loops in C++
constexpr const char* kBarrierAlone = "barrier_alone";
constexpr const char* kAfter = "phalanx_all_reduce";
constexpr const char* kOverlapped = "phalanx_overlapped";

/// A system with the measurements so far.
class MeasuredSystem {
 public:
  MeasuredSystem(const System& system, const Setting& setting, double until_loss)
      : processes_(system, setting),
        ranks_(static_cast<double>(setting.ranks)),
        samples_(static_cast<double>(setting.workload.batch) * ranks_),
        to_loss_(system.alone || system.has_barrier ? 0 : until_loss) {}  // these do not train one model together

  // Chooses the number of steps that take about `seconds`, the time of a turn. Measures it after the first steps, which
  // warm up caches, memory and connections and may take much longer.
  void warm_up(double seconds) {
    run(processes_.system().warm_up);
    std::int64_t steps = 1;
    Turn turn = run(steps);
    while (turn.seconds < seconds / 4 && !to_loss_.arrived()) turn = run(steps *= 2);
    steps_ = std::max<std::int64_t>(1, std::llround(seconds / turn.seconds * static_cast<double>(steps)));
    align();
  }

  void take_turn() {
    const Turn turn = run(steps_);
    const auto steps = static_cast<double>(turn.steps);
    times_backward_ = turn.backward_seconds.has_value();
    rates_.push_back(samples_ * steps / turn.seconds);
    times_.push_back({.step_ms = turn.seconds / steps * 1000,
                      .backward_ms = turn.backward_seconds.value_or(0) / steps * 1000,
                      .busy_ms = turn.busy_seconds / steps / ranks_ * 1000});
  }

  bool under_way() const { return to_loss_.under_way(); }
  const System& system() const { return processes_.system(); }
  const std::string& name() const { return system().name; }
  const std::vector<StepTime>& times() const { return times_; }
  const std::vector<double>& rates() const { return rates_; }

  Row row(const Setting& setting) const {
    return {.workload = setting.workload.name,
            .system = name(),
            .ranks = setting.ranks,
            .kernels = processes_.kernels(),
            .samples_per_second = quantile(rates_, 0.5),
            .p10 = quantile(rates_, 0.1),
            .p90 = quantile(rates_, 0.9),
            .step_ms = median(&StepTime::step_ms),
            .backward_ms = times_backward_ ? std::optional(median(&StepTime::backward_ms)) : std::nullopt,
            .busy_ms = median(&StepTime::busy_ms),
            .seconds_to_loss = to_loss_.seconds(),
            .steps_to_loss = to_loss_.steps(),
            .losses = to_loss_.losses()};
  }

 private:
  // Moves work that is done every n-th step to the middle of a turn, so that a turn times all of it.
  void align() {
    const std::int64_t period = processes_.system().period;
    if (period == 1) return;
    steps_ = (steps_ + period - 1) / period * period;
    const std::int64_t rest = (period / 2 - steps_done_ % period + period) % period;
    if (rest > 0) run(rest);
  }

  double median(double StepTime::* field) const {
    std::vector<double> values;
    for (const auto& time : times_) values.push_back(time.*field);
    return quantile(values, 0.5);
  }

  Turn run(std::int64_t steps) {
    const Turn turn = processes_.run(steps);
    steps_done_ += steps;
    to_loss_.add(turn.losses, turn.seconds);
    return turn;
  }

  RankProcesses processes_;
  double ranks_;
  double samples_;  // per step, all ranks together
  TimeToLoss to_loss_;
  std::int64_t steps_ = 1;  // per turn
  std::int64_t steps_done_ = 0;
  bool times_backward_ = true;
  std::vector<double> rates_;  // samples per second by round, like the times
  std::vector<StepTime> times_;
};

using MeasuredSystems = std::vector<std::unique_ptr<MeasuredSystem>>;

// Returns the number of samples without a last partial batch: peers drop it, so all systems do.
std::int64_t in_whole_batches(std::int64_t samples, std::int64_t batch) {
  if (samples >= batch) return samples - samples % batch;
  throw ConfigError("--dataset has " + std::to_string(samples) + " samples, fewer than the " + std::to_string(batch) +
                    " of a batch of all ranks; use a larger one, or fewer --ranks");
}

DataFiles make_data(const Options& options, const Workload& workload, const std::string& folder) {
  Workload fit = workload;
  const auto take = [&](std::int64_t samples) {
    fit.samples = in_whole_batches(samples, workload.batch * options.ranks);
  };
  if (options.dataset.empty()) {
    take(workload.samples);
    return draw_samples(fit, folder);
  }
  const auto dataset = config::load_as<Datasets::Choice>("dataset", options.dataset, "--dataset").make().train;
  take(std::min(dataset->size(), workload.samples));
  return export_samples(*dataset, fit, folder);
}

const MeasuredSystem* find(const MeasuredSystems& all, const std::string& name) {
  const auto found = std::ranges::find_if(all, [&](const auto& one) { return one->name() == name; });
  return found == all.end() ? nullptr : found->get();
}

// Returns the median ratio within rounds. Ratios of whole medians would also show changes in the load of the machine.
std::optional<double> ratio(const MeasuredSystem& one, const MeasuredSystems& all, const std::string& base) {
  const auto* other = find(all, base);
  if (other == nullptr) return std::nullopt;
  std::vector<double> ratios;
  for (std::size_t round = 0; round < one.rates().size(); ++round) {
    ratios.push_back(one.rates()[round] / other->rates()[round]);
  }
  return median(ratios);
}

// Returns the share of communication that is hidden. Waiting for the slower rank cannot be hidden; only a limit in
// which the ranks meet shows how long that takes, so it is preferred.
std::optional<HiddenShare> hidden(const MeasuredSystem& one, const MeasuredSystems& all, int ranks) {
  const auto *after = find(all, kAfter), *limit = find(all, kBarrierAlone);
  if (limit == nullptr) limit = find(all, kLimit);
  if (one.name() != kOverlapped || after == nullptr || limit == nullptr) return std::nullopt;
  auto share = hidden_share(after->times(), one.times(), limit->times());
  // With free cores, communication could compute on them.
  if (share && std::ssize(allowed_cores()) > ranks) share->of_waiting.reset();
  return share;
}

// Shows the progress, because a run may take half an hour. It overwrites one line, so it prints only to a terminal.
void print_progress(const std::string& workload, int round, const Options& options, std::int64_t under_way, bool over) {
  if (::isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r%s: round %d of %d", workload.c_str(), round, options.rounds);
  if (options.until_loss > 0) std::fprintf(stderr, ", %d have not reached the loss yet", static_cast<int>(under_way));
  std::fprintf(stderr, "\033[K%s", over ? "\n" : "");
}

// Calls `act` for one system after the other in random order. A system that fails is removed; a peer may fail after
// half an hour.
template <class Act>
void each(MeasuredSystems& all, const std::string& workload, std::mt19937& random, std::vector<std::string>& failures,
          Act act) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);  // no system should always follow the same other one
  for (const auto i : order) {
    try {
      act(*all[i]);
    } catch (const Error& error) {
      failures.push_back(workload + ": " + error.what());
      std::fprintf(stderr, "\n%s; leaving it out\n", failures.back().c_str());
      all[i].reset();
    }
  }
  std::erase(all, nullptr);
}

void run_rounds(const Options& options, const std::string& workload, MeasuredSystems& all,
                std::vector<std::string>& failures) {
  std::mt19937 random;
  each(all, workload, random, failures, [&](MeasuredSystem& one) { one.warm_up(options.seconds); });
  for (int round = 1; round <= options.rounds && !all.empty(); ++round) {
    each(all, workload, random, failures, [](MeasuredSystem& one) { one.take_turn(); });
    const auto under_way = std::ranges::count_if(all, [](const auto& one) { return one->under_way(); });
    const bool over = round == options.rounds || (options.until_loss > 0 && under_way == 0);
    print_progress(workload, round, options, under_way, over);
    if (over) return;
  }
}

// Sets the operations and the share of the peak. The operations are the same for all systems: they depend on the model
// only, not on how a system computes it.
void set_share_of_peak(Row& row, const std::optional<double>& operations_of_rank, double peak) {
  if (!operations_of_rank) return;
  row.operations = *operations_of_rank * row.ranks;
  row.of_peak = *row.operations / (row.step_ms / 1000) / (peak * row.ranks);
}

void measure(const Options& options, const Hosts& hosts, double peak, const Workload& workload, Measured& measured) {
  const TemporaryFolder folder(TemporaryFolder::Removal::kAlways);
  const Setting setting{.workload = workload,
                        .data = make_data(options, workload, folder.path()),
                        .ranks = options.ranks,
                        .hosts = hosts,
                        .program = options.program,
                        .python = options.python,
                        .jax_python = options.jax_python,
                        .folder = folder.path()};
  MeasuredSystems all;
  for (const auto& name : options.systems) {
    const auto& system = find_system(name);
    if (!applies(system, workload)) {
      std::fprintf(stderr, "%s: skipping %s, which does not apply\n", workload.name.c_str(), name.c_str());
      continue;
    }
    std::fprintf(stderr, "%s: starting %s ...\n", workload.name.c_str(), name.c_str());
    all.push_back(std::make_unique<MeasuredSystem>(system, setting, options.until_loss));
  }
  if (all.empty()) {
    throw ConfigError("none of --systems applies to workload " + workload.name +
                      "; leave the workload out, or add phalanx");
  }
  const auto operations = flops_of_step(workload, setting.data.sample, workload.batch);
  run_rounds(options, workload.name, all, measured.failures);
  auto& rows = measured.rows;
  for (const auto& one : all) {
    rows.push_back(one->row(setting));
    rows.back().ratio = ratio(*one, all, options.base);
    set_share_of_peak(rows.back(), operations, peak);
    rows.back().ratio_to_limit = ratio(*one, all, is_cpp_loop(one->system()) ? kCppLimit : kLimit);
    rows.back().hidden = hidden(*one, all, options.ranks);
  }
}

}  // namespace

Measured measure(const Options& options, const Hosts& hosts, double peak,
                 const std::function<void(const std::vector<Row>&)>& keep) {
  Measured measured;
  for (const auto& name : options.workloads) {
    measure(options, hosts, peak, find_workload(name), measured);
    keep(measured.rows);
  }
  return measured;
}

}  // namespace phalanx::bench_train
