// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/turns.h"

#include <unistd.h>

#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "framework/base/error.h"
#include "framework/kernels/kernels.h"
#include "launch/exit_status.h"

namespace phalanx::bench_train {
namespace {

double seconds(std::chrono::steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

void Turns::attach(Engine& engine) {
  engine.on(Event::kStart, [this](State&) {
    out_ << "ready " << kernels::kernels_in_use() << std::endl;
    wait();
  });
  engine.on(Event::kForwardCriterion, [this](State&) { backward_start_ = Clock::now(); });
  engine.on(Event::kBackward, [this](State&) { backward_ += Clock::now() - backward_start_; });
  engine.on(Event::kUpdate, [this](State& state) { count(state); });
}

void Turns::wait() {
  std::string line, word;
  // Ends at once: peers are about to end too, so they need no shutdown of this rank.
  if (!std::getline(in_, line)) ::_exit(kDone);
  std::istringstream words(line);
  if (!(words >> word >> steps_) || word != "run" || steps_ < 1)
    throw Error("expected \"run STEPS\", got \"" + line + "\"");
  left_ = steps_;
  losses_.clear();
  backward_ = {};
  start_ = Clock::now();
}

void Turns::count(const State& state) {
  if (!state.result.elsewhere()) losses_.push_back(state.result.loss.item<double>());
  if (--left_ > 0) return;
  const nlohmann::json turn = {
      {"seconds", seconds(Clock::now() - start_)}, {"backward", seconds(backward_)}, {"losses", losses_}};
  out_ << turn.dump() << std::endl;
  wait();
}

}  // namespace phalanx::bench_train
