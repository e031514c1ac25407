// SPDX-License-Identifier: Apache-2.0
// What every registered dataset has.
#include <gtest/gtest.h>

#include "datasets/dataset.h"
#include "framework/base/config/config.h"

namespace phalanx {
namespace {

TEST(Datasets, ThereAreSome) { EXPECT_GE(Datasets::global().names().size(), 2u); }

// Scripts rely on it: one key says where the data is, whatever the dataset.
TEST(Datasets, EachHasARoot) {
  for (const auto& name : Datasets::global().names()) {
    EXPECT_NO_THROW(config::load_as<Datasets::Choice>("dataset", "{name: " + name + ", root: /data}", "test")) << name;
  }
}

}  // namespace
}  // namespace phalanx
