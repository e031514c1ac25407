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
#include "launch/temporary_folder.h"
#include "tools/bench/quantile.h"
#include "tools/bench_train/team.h"
#include "tools/bench_train/time_to_loss.h"
#include "tools/bench_train/workload.h"

namespace phalanx::bench_train {
namespace {

using bench::quantile;

constexpr const char* kLimit = "no_communication";
constexpr const char* kMeeting = "barrier_alone";
constexpr const char* kAfter = "phalanx_all_reduce";
constexpr const char* kOverlapped = "phalanx_overlapped";

/// A system with what was measured so far.
class Contestant {
 public:
  Contestant(const System& system, const Setting& setting, double until_loss)
      : team_(system, setting),
        ranks_(static_cast<double>(setting.ranks)),
        samples_(static_cast<double>(setting.workload.batch) * ranks_),
        to_loss_(system.alone || system.meets ? 0 : until_loss) {}  // those train no model together

  // Steps that take about as long as a turn is to take, told by those after the first, which warm up caches, memory and
  // connections and may take much longer.
  void warm_up(double seconds) {
    run(team_.system().warm_up);
    std::int64_t steps = 1;
    Turn turn = run(steps);
    while (turn.seconds < seconds / 4 && !to_loss_.arrived()) turn = run(steps *= 2);
    steps_ = std::max<std::int64_t>(1, std::llround(seconds / turn.seconds * static_cast<double>(steps)));
    align();
  }

  void take_turn() {
    const Turn turn = run(steps_);
    const auto steps = static_cast<double>(turn.steps);
    tells_backward_ = turn.backward_seconds.has_value();
    rates_.push_back(samples_ * steps / turn.seconds);
    times_.push_back({.step_ms = turn.seconds / steps * 1000,
                      .backward_ms = turn.backward_seconds.value_or(0) / steps * 1000,
                      .busy_ms = turn.busy_seconds / steps / ranks_ * 1000});
  }

  bool under_way() const { return to_loss_.under_way(); }
  const std::string& name() const { return team_.system().name; }
  const std::vector<StepTime>& times() const { return times_; }
  const std::vector<double>& rates() const { return rates_; }

  Row row(const Setting& setting) const {
    return {.workload = setting.workload.name,
            .system = name(),
            .ranks = setting.ranks,
            .kernels = team_.kernels(),
            .samples_per_second = quantile(rates_, 0.5),
            .p10 = quantile(rates_, 0.1),
            .p90 = quantile(rates_, 0.9),
            .step_ms = median(&StepTime::step_ms),
            .backward_ms = tells_backward_ ? std::optional(median(&StepTime::backward_ms)) : std::nullopt,
            .busy_ms = median(&StepTime::busy_ms),
            .seconds_to_loss = to_loss_.seconds(),
            .steps_to_loss = to_loss_.steps(),
            .losses = to_loss_.losses()};
  }

 private:
  // What is done every n-th step lies in the middle of the steps between two turns, so that all of it is timed.
  void align() {
    const std::int64_t period = team_.system().period;
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
    const Turn turn = team_.run(steps);
    steps_done_ += steps;
    to_loss_.add(turn.losses, turn.seconds);
    return turn;
  }

  Team team_;
  double ranks_;
  double samples_;  // of a step, all ranks together
  TimeToLoss to_loss_;
  std::int64_t steps_ = 1;  // of a turn
  std::int64_t steps_done_ = 0;
  bool tells_backward_ = true;
  std::vector<double> rates_;  // samples a second, by round, as the times
  std::vector<StepTime> times_;
};

using Contestants = std::vector<std::unique_ptr<Contestant>>;

// Peers leave out a last batch that is shorter, and so all do.
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

const Contestant* find(const Contestants& all, const std::string& name) {
  const auto found = std::ranges::find_if(all, [&](const auto& one) { return one->name() == name; });
  return found == all.end() ? nullptr : found->get();
}

// Systems that cannot be told from each other where all are new may differ by the machine's mood: so ratios are of
// turns of the same round.
std::optional<double> ratio(const Contestant& one, const Contestants& all, const std::string& base) {
  const auto* other = find(all, base);
  if (other == nullptr) return std::nullopt;
  std::vector<double> ratios;
  for (std::size_t round = 0; round < one.rates().size(); ++round) {
    ratios.push_back(one.rates()[round] / other->rates()[round]);
  }
  return quantile(ratios, 0.5);
}

// Waiting for the slower rank is no communication that could be hidden; only a limit whose ranks meet shows what it
// takes.
std::optional<HiddenShare> hidden(const Contestant& one, const Contestants& all, int ranks) {
  const auto *after = find(all, kAfter), *limit = find(all, kMeeting);
  if (limit == nullptr) limit = find(all, kLimit);
  if (one.name() != kOverlapped || after == nullptr || limit == nullptr) return std::nullopt;
  auto share = hidden_share(after->times(), one.times(), limit->times());
  // A core that is free could compute what communication computes.
  if (share && std::ssize(allowed_cores()) > ranks) share->of_waiting.reset();
  return share;
}

// A run may take half an hour. One line that is written over and over, and so only on a terminal.
void tell(const std::string& workload, int round, const Options& options, std::int64_t under_way, bool over) {
  if (::isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r%s: round %d of %d", workload.c_str(), round, options.rounds);
  if (options.until_loss > 0) std::fprintf(stderr, ", %d have not reached the loss yet", static_cast<int>(under_way));
  std::fprintf(stderr, "\033[K%s", over ? "\n" : "");
}

// One by one. A system that fails, as a peer may after half an hour, is left out from then on.
template <class Act>
void each(Contestants& all, const std::string& workload, std::mt19937& random, std::vector<std::string>& failures,
          Act act) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);  // a turn is not to come after the same other one each time
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

void run_rounds(const Options& options, const std::string& workload, Contestants& all,
                std::vector<std::string>& failures) {
  std::mt19937 random;
  each(all, workload, random, failures, [&](Contestant& one) { one.warm_up(options.seconds); });
  for (int round = 1; round <= options.rounds && !all.empty(); ++round) {
    each(all, workload, random, failures, [](Contestant& one) { one.take_turn(); });
    const auto under_way = std::ranges::count_if(all, [](const auto& one) { return one->under_way(); });
    const bool over = round == options.rounds || (options.until_loss > 0 && under_way == 0);
    tell(workload, round, options, under_way, over);
    if (over) return;
  }
}

// The same for all systems: what the model takes, however a system computes it.
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
                        .python = options.python,
                        .jax_python = options.jax_python,
                        .folder = folder.path()};
  Contestants all;
  for (const auto& name : options.systems) {
    const auto& system = find_system(name);
    if (!applies(system, workload)) {
      std::fprintf(stderr, "%s: leaving out %s, which does not apply\n", workload.name.c_str(), name.c_str());
      continue;
    }
    std::fprintf(stderr, "%s: starting %s ...\n", workload.name.c_str(), name.c_str());
    all.push_back(std::make_unique<Contestant>(system, setting, options.until_loss));
  }
  if (all.empty()) {
    throw ConfigError("none of --systems applies to workload " + workload.name +
                      "; leave the workload out, or add phalanx");
  }
  const auto operations = operations_of_step(workload, setting.data.sample, workload.batch);
  run_rounds(options, workload.name, all, measured.failures);
  auto& rows = measured.rows;
  for (const auto& one : all) {
    rows.push_back(one->row(setting));
    rows.back().ratio = ratio(*one, all, options.base);
    set_share_of_peak(rows.back(), operations, peak);
    rows.back().ratio_to_limit = ratio(*one, all, kLimit);
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
