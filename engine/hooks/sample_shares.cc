// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/sample_shares.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string>

#include "engine/checkpoint/numbers_part.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/comm/operations/measured_inputs.h"

namespace phalanx {
namespace {

constexpr std::int64_t kLargestShare = 1'000'000;
constexpr double kChange = 1.5;  // a rate that differs by this factor is not a fluctuation

std::string joined(const std::vector<std::int64_t>& shares) {
  std::vector<std::string> words;
  for (const auto share : shares) words.push_back(std::to_string(share));
  return join(words, ":");
}

// Returns {2, 1} for "2:1". Throws ConfigError if `text` is not such a list.
std::vector<std::int64_t> parse_shares(const std::string& text) {
  std::vector<std::int64_t> shares;
  const char* next = text.data();
  const char* const end = next + text.size();
  for (;;) {
    std::int64_t share = 0;
    const auto [stop, error] = std::from_chars(next, end, share);
    if (error != std::errc() || share < 1 || share > kLargestShare || (stop != end && *stop != ':')) break;
    shares.push_back(share);
    if (stop == end) return shares;
    next = stop + 1;
  }
  throw ConfigError("loader.shares: expected equal, measured, or a share from 1 to " + std::to_string(kLargestShare) +
                    " for each rank, such as 2:1, got \"" + text + "\"");
}

std::vector<std::int64_t> shares_for(const std::string& text, std::int64_t ranks, std::int64_t batch) {
  auto shares = parse_shares(text);
  if (static_cast<std::int64_t>(shares.size()) != ranks) {
    throw ConfigError("loader.shares: " + text + " has " + std::to_string(shares.size()) + " shares, but " +
                      std::to_string(ranks) + " ranks divide a batch; give each one");
  }
  const auto sum = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  const auto least = std::ranges::min(shares);
  if (static_cast<double>(batch) * static_cast<double>(least) < static_cast<double>(sum)) {
    throw ConfigError("loader.shares: of train.global_batch_size: " + std::to_string(batch) + ", a share of " +
                      std::to_string(least) + " in " + std::to_string(sum) +
                      " is less than a sample; use a larger batch, or shares that differ less");
  }
  return shares;
}

}  // namespace

std::vector<std::int64_t> proportional_shares(std::int64_t batch, std::vector<double> rates) {
  const auto known = std::ranges::count_if(rates, [](double rate) { return rate > 0; });
  const double mean = known > 0 ? std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(known) : 1.0;
  for (auto& rate : rates) rate = rate > 0 ? rate : mean;
  const double sum = std::accumulate(rates.begin(), rates.end(), 0.0);
  std::vector<std::int64_t> shares;
  std::vector<double> lacking;  // exact share minus rounded share
  for (const double rate : rates) {
    const double exact = static_cast<double>(batch) * rate / sum;
    shares.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(exact)));
    lacking.push_back(exact - static_cast<double>(shares.back()));
  }
  auto left = batch - std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  for (; left > 0; --left) {
    const auto rank = std::ranges::max_element(lacking) - lacking.begin();
    ++shares[static_cast<std::size_t>(rank)];
    --lacking[static_cast<std::size_t>(rank)];
  }
  for (; left < 0; ++left) --*std::ranges::max_element(shares);  // if the slowest ranks were rounded up to 1
  return shares;
}

double expected_rate(double before, double measured) {
  const bool as_before = measured < kChange * before && before < kChange * measured;
  return as_before ? (before + measured) / 2 : measured;
}

SampleShares::SampleShares(const ExperimentConfig& config, const Mesh& mesh, StepClock& clock)
    : global_batch_(config.train.global_batch_size),
      all_(mesh.control()),
      place_(mesh.samples()->rank()),
      clock_(clock),
      counts_all_work_(config.strategy.traits().never_waits()) {
  const auto& asked = config.loader.shares;
  if (asked == "equal") return;
  const auto ranks = mesh.samples()->size();
  if (asked != "measured") {
    shares_ = std::make_shared<std::vector<std::int64_t>>(shares_for(asked, ranks, global_batch_));
    return;
  }
  if (global_batch_ < ranks) {
    throw ConfigError("loader.shares: train.global_batch_size: " + std::to_string(global_batch_) +
                      " is less than a sample for each of " + std::to_string(ranks) + " ranks");
  }
  measured_ = true;
  rates_.resize(static_cast<std::size_t>(ranks));
  shares_ = std::make_shared<std::vector<std::int64_t>>(proportional_shares(global_batch_, rates_));
  log_info() << "loader.shares: measured: results depend on how fast the ranks are, so no two runs have the same bits";
}

void SampleShares::attach(Engine& engine) {
  if (!measured_) return;
  engine.on(Event::kStartEpoch, HookPhase::kAdapt, [this](State&) { start_epoch(); });
  engine.on(Event::kSample, HookPhase::kAdapt, [this](State& state) { samples_ += state.batch.valid; });
  engine.on(Event::kUpdate, HookPhase::kAdapt, [this](State&) { ++steps_; });
  // No loader gathers batches between epochs: a loader that prefetches has reached the end of this epoch.
  engine.on(Event::kEndEpoch, HookPhase::kAdapt, [this](State& state) {
    if (!state.stop) end_epoch();
  });
}

void SampleShares::start_epoch() {
  clock_.synchronize();
  before_ = clock_.total();
  samples_ = steps_ = 0;
}

void SampleShares::end_epoch() {
  clock_.synchronize();
  double seconds = 0;
  const PhaseTimes times = clock_.total() - before_;
  const auto count = [&](Phase phase) { seconds += times.seconds[static_cast<std::size_t>(phase)]; };
  for (const auto phase : {Phase::kData, Phase::kForward, Phase::kBackward}) count(phase);
  if (counts_all_work_) {
    for (const auto phase : {Phase::kCommunication, Phase::kUpdate}) count(phase);
  }
  at::Tensor own = at::empty({2}, at::kDouble), all = at::empty({all_->size(), 2}, at::kDouble);
  own.data_ptr<double>()[0] = place_;
  own.data_ptr<double>()[1] = rate_of(times.steps, seconds);
  const MeasuredInputs measured_inputs;
  all_->all_gather(all, own).wait();
  std::vector<double> measured(rates_.size());
  for (int rank = 0; rank < all_->size(); ++rank) {
    auto& slowest = measured[static_cast<std::size_t>(all.data_ptr<double>()[2 * rank])];
    const double rate = all.data_ptr<double>()[2 * rank + 1];
    slowest = slowest > 0 ? std::min(slowest, rate) : rate;  // of the ranks that have the same samples
  }
  for (std::size_t i = 0; i < rates_.size(); ++i) {
    if (measured[i] > 0) rates_[i] = expected_rate(rates_[i], measured[i]);
  }
  *shares_ = proportional_shares(global_batch_, rates_);
  log_info() << "shares of the next epoch: " << joined(*shares_) << " of " << global_batch_ << " samples";
}

// Returns the samples per second of this epoch. On a device, its steps are not all measured, and those that are may be
// counted in the next epoch.
double SampleShares::rate_of(std::int64_t measured_steps, double seconds) const {
  if (steps_ == 0 || seconds <= 0) return 0;
  const double samples_of_step = static_cast<double>(samples_) / static_cast<double>(steps_);
  return samples_of_step * static_cast<double>(measured_steps) / seconds;
}

CheckpointPart SampleShares::part() {
  return numbers_part(
      "loader_shares",
      [this] {
        std::vector<double> state(shares_->begin(), shares_->end());
        state.insert(state.end(), rates_.begin(), rates_.end());
        return state;
      },
      [this](const std::vector<double>& state) {
        if (state.size() != 2 * rates_.size()) return;  // saved on another number of ranks: measure again
        const auto middle = state.begin() + static_cast<std::ptrdiff_t>(rates_.size());
        rates_.assign(middle, state.end());
        const std::vector<std::int64_t> shares(state.begin(), middle);
        const auto sum = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
        *shares_ = sum == global_batch_ ? shares : proportional_shares(global_batch_, rates_);
      });
}

}  // namespace phalanx
