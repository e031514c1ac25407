// Tests the properties of `tiny` that //tests/zoo does not check of every model.
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <string>

#include "framework/base/config/config.h"
#include "models/model.h"

namespace phalanx {
namespace {

std::shared_ptr<Model> make(const std::string& section) {
  const ModelSpec images{.inputs = {{.name = "image", .shape = {1, 28, 28}}},
                         .outputs = {{.name = "scores", .shape = {10}}}};
  return config::load_as<Models::Choice>("model", section, "test.yaml").make(images);
}

TEST(Tiny, GivesAScoreForEachClass) {
  const Tensors outputs = make("{name: tiny}")->outputs({at::zeros({3, 1, 28, 28})});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].sizes(), (at::IntArrayRef{3, 10}));
}

TEST(Tiny, HasTheParametersOfTwoLayers) {
  std::int64_t count = 0;
  for (const auto& parameter : make("{name: tiny, hidden: 5}")->parameters()) count += parameter.numel();
  EXPECT_EQ(count, (784 * 5 + 5) + (5 * 10 + 10));
}

}  // namespace
}  // namespace phalanx
