// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/cpp/loop.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randperm.h>
#include <torch/utils.h>

#include <chrono>
#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace phalanx::bench_train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::shared_ptr<Network> seeded_network(const LoopJob& job) {
  torch::manual_seed(1);
  return make_network(job.model, job.input, job.classes);
}

}  // namespace

Loop::Loop(const LoopJob& job)
    : job_(job),
      samples_(map_samples(job)),
      network_(seeded_network(job)),
      optimizer_(network_->parameters(), torch::optim::SGDOptions(job.learning_rate).momentum(0.9)) {}

LoopTurn Loop::run(std::int64_t steps) {
  LoopTurn turn;
  const auto start = Clock::now();
  for (std::int64_t i = 0; i < steps; ++i) turn.losses.push_back(step(turn));
  turn.seconds = seconds_since(start);
  return turn;
}

double Loop::step(LoopTurn& turn) {
  const at::Tensor rows = next_rows();
  const at::Tensor inputs = samples_.inputs.index_select(0, rows), targets = samples_.targets.index_select(0, rows);
  exchange_->zero_gradients(optimizer_);
  exchange_->before_forward();
  const at::Tensor scores = network_->forward(inputs);
  const at::Tensor loss = at::cross_entropy_loss(scores.flatten(0, -2), targets.flatten());
  exchange_->before_backward();
  const auto start = Clock::now();
  loss.backward();
  exchange_->after_backward();
  turn.backward += seconds_since(start);
  exchange_->update(optimizer_);
  return loss.item<double>();
}

// Returns this rank's share of the next global batch.
at::Tensor Loop::next_rows() {
  const std::int64_t global = job_.batch * job_.size;
  if (epoch_ < 0 || next_ + global > job_.samples) {
    order_ = at::randperm(job_.samples, at::make_generator<at::CPUGeneratorImpl>(++epoch_), at::kLong);
    next_ = 0;
  }
  const at::Tensor rows = order_.narrow(0, next_ + job_.rank * job_.batch, job_.batch);
  next_ += global;
  return rows;
}

std::optional<std::int64_t> read_turn(std::istream& in) {
  std::string line, word;
  if (!std::getline(in, line) || line == "end") return std::nullopt;
  std::istringstream words(line);
  std::int64_t steps = 0;
  if (!(words >> word >> steps) || word != "run" || steps < 1) {
    throw std::runtime_error("expected \"run STEPS\" or \"end\", got \"" + line + "\"");
  }
  return steps;
}

void write_turn(const LoopTurn& turn, std::ostream& out) {
  const nlohmann::json json = {{"seconds", turn.seconds}, {"backward", turn.backward}, {"losses", turn.losses}};
  out << json.dump() << std::endl;
}

void serve(Loop& loop, std::istream& in, std::ostream& out) {
  out << "ready" << std::endl;
  while (const auto steps = read_turn(in)) write_turn(loop.run(*steps), out);
}

}  // namespace phalanx::bench_train
