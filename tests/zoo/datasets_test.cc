// SPDX-License-Identifier: Apache-2.0
// Tests what every registered dataset must have.
#include <gtest/gtest.h>

#include "datasets/dataset.h"
#include "framework/base/config/config.h"

namespace phalanx {
namespace {

TEST(Datasets, ThereAreSome) { EXPECT_GE(Datasets::global().names().size(), 2u); }

// Scripts rely on it: the same key names the folder of the data for all datasets.
TEST(Datasets, EachHasARoot) {
  for (const auto& name : Datasets::global().names()) {
    EXPECT_NO_THROW(config::load_as<Datasets::Choice>("dataset", "{name: " + name + ", root: /data}", "test")) << name;
  }
}

}  // namespace
}  // namespace phalanx
