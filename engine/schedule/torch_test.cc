// SPDX-License-Identifier: Apache-2.0
// Compares every schedule that torch also has with torch.optim.lr_scheduler 2.13: the learning rate of an optimizer
// with rate 1 at update `step`, where the scheduler steps once after each update.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "engine/testing/schedule.h"

namespace phalanx {
namespace {

struct Golden {
  std::int64_t step;
  double factor;
};

struct Case {
  const char* name;
  const char* torch;
  const char* yaml;
  std::int64_t steps;
  std::vector<Golden> golden;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.torch; }

class AgainstTorch : public ::testing::TestWithParam<Case> {};

TEST_P(AgainstTorch, HasItsFactors) {
  const auto schedule = testing::make_schedule(GetParam().yaml);
  for (const auto& [step, factor] : GetParam().golden) {
    EXPECT_NEAR(schedule->factor(step, GetParam().steps), factor, 1e-12 + 1e-9 * factor) << "at step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, AgainstTorch,
    ::testing::Values(
        Case{"step",
             "StepLR(30, 0.1)",
             "{name: step, every: 30, gamma: 0.1}",
             100,
             {{0, 1}, {29, 1}, {30, 0.1}, {59, 0.1}, {60, 0.01}, {99, 0.001}}},
        Case{"multi_step",
             "MultiStepLR([30, 80], 0.5)",
             "{name: multi_step, at: [30, 80], gamma: 0.5}",
             100,
             {{0, 1}, {29, 1}, {30, 0.5}, {79, 0.5}, {80, 0.25}, {99, 0.25}}},
        Case{"exponential",
             "ExponentialLR(0.9)",
             "{name: exponential, gamma: 0.9}",
             60,
             {{0, 1}, {1, 0.9}, {10, 0.34867844010000015}, {50, 0.00515377520732012}}},
        Case{"linear_up",
             "LinearLR(0.25, 1, 4)",
             "{name: linear, from: 0.25, to: 1, over: 4}",
             10,
             {{0, 0.25}, {1, 0.4375}, {2, 0.625}, {3, 0.8125}, {4, 1}, {9, 1}}},
        Case{"linear_down",
             "LinearLR(1, 0.1, 100)",
             "{name: linear, to: 0.1}",
             100,
             {{0, 1}, {1, 0.991}, {50, 0.55}, {99, 0.109}, {100, 0.1}, {119, 0.1}}},
        Case{"polynomial",
             "PolynomialLR(100, 2)",
             "{name: polynomial, power: 2}",
             100,
             {{0, 1}, {1, 0.9801}, {25, 0.5625}, {50, 0.25}, {99, 0.0001}, {100, 0}, {119, 0}}},
        Case{"cosine",
             "CosineAnnealingLR(100, 0.1)",
             "{name: cosine, final_factor: 0.1}",
             100,
             {{0, 1},
              {1, 0.9997779521645792},
              {25, 0.8681980515339464},
              {50, 0.55},
              {75, 0.231801948466054},
              {99, 0.10022204783542078},
              {100, 0.1}}},
        Case{"one_cycle",
             "OneCycleLR(1, 100)",
             "one_cycle",
             100,
             {{0, 0.04},
              {1, 0.042813780565907456},
              {14, 0.49401332387899954},
              {29, 1},
              {30, 0.9994965352845243},
              {50, 0.793893450575732},
              {98, 0.0005074647154757879},
              {99, 4e-06},
              {100, 4e-06}}},
        Case{"one_cycle_short",
             "OneCycleLR(1, 7)",
             "one_cycle",
             7,
             {{0, 0.04},
              {1, 0.9805566273349586},
              {2, 0.9190443762697106},
              {3, 0.6726838364805451},
              {5, 0.0992967918932656},
              {6, 4e-06}}},
        Case{"one_cycle_linear",
             "OneCycleLR(1, 100, anneal_strategy=linear)",
             "{name: one_cycle, shape: linear}",
             100,
             {{0, 0.04},
              {1, 0.07310344827586207},
              {14, 0.503448275862069},
              {29, 1},
              {30, 0.9857143428571429},
              {50, 0.7000012},
              {98, 0.014289657142857126},
              {99, 4.000000000004e-06}}},
        Case{"warmup",
             "LinearLR(0.25, 1, 4)",
             "{name: warmup, over: 4, from: 0.25}",
             10,
             {{0, 0.25}, {1, 0.4375}, {2, 0.625}, {3, 0.8125}, {4, 1}, {9, 1}}},
        Case{"warmup_of_a_cosine",
             "LinearLR(0.1, 1, 5) times CosineAnnealingLR(20)",
             "{name: warmup, over: 5, from: 0.1, schedule: cosine}",
             20,
             {{0, 0.1},
              {1, 0.27827636768331926},
              {4, 0.7416969676937283},
              {5, 0.8535533905932735},
              {6, 0.7938926261462363},
              {19, 0.0061558297024311695}}},
        Case{"one_cycle_without_a_rise",
             "OneCycleLR(1, 10, pct_start=0.05)",
             "{name: one_cycle, rise: 0.05}",
             10,
             {{0, 0.9931806789787544}, {1, 0.9397371166557421}, {5, 0.3772597474005747}, {9, 4e-06}}},
        Case{"chained",
             "SequentialLR([LinearLR(0.25, 1, 4), CosineAnnealingLR(96)], [4])",
             "{name: chained, parts: [{schedule: {name: linear, from: 0.25, to: 1}, steps: 4}, {schedule: cosine}]}",
             100,
             {{0, 0.25}, {3, 0.8125}, {4, 1}, {5, 0.9997322937381828}, {52, 0.5}, {99, 0.00026770626181715773}}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace phalanx
