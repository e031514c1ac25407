// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "tools/bench/subject.h"

namespace phalanx::bench {
namespace {

class TimedTrial final : public Trial {
 public:
  TimedTrial(std::function<void()> synchronize, Measure measure)
      : synchronize_(std::move(synchronize)), measure_(std::move(measure)) {}

  double run(std::int64_t repeats) override {
    synchronize_();
    return measure_(repeats) / static_cast<double>(repeats);
  }

 private:
  std::function<void()> synchronize_;
  Measure measure_;
};

}  // namespace

std::unique_ptr<Trial> make_trial(std::function<void()> synchronize, Measure measure) {
  return std::make_unique<TimedTrial>(std::move(synchronize), std::move(measure));
}

}  // namespace phalanx::bench
