// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tools/history/database.h"

namespace phalanx::history {

/// Nights that never were: every night runs the same cases once. The values are 1000 samples per second, an accuracy of
/// 0.97 and so on, with normally distributed noise. They depend only on these fields.
struct PlantedNights {
  int nights = 30;
  int cases = 4;
  int epochs = 3;        // with loss and accuracy of each
  double noise = 0.01;   // standard deviation of throughput between nights, relative to it
  int slower_from = -1;  // the night, from 0, from which on the first case is slower; -1: never
  double slower_by = 0.07;
  std::uint64_t seed = 1;
};

/// Adds the nights to a database, one a day from 2026-01-01T02:00:00Z on. They are of suite "nightly". The cases are
/// called case_0, case_1, ...; case i runs configs/mnist_i.yaml. Night n has commit planted_commit(n).
void plant(Database& database, const PlantedNights& planted);

/// Returns 40 hexadecimal digits.
std::string planted_commit(int night);

/// Returns a normally distributed number with mean 0 and standard deviation 1: the same for the same arguments on every
/// machine. The sum of 12 uniform numbers, so it lies between -6 and 6.
double planted_noise(std::uint64_t seed, std::uint64_t index);

}  // namespace phalanx::history
