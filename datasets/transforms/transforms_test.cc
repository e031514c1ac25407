// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "datasets/transforms/transform.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::unique_ptr<const Transform> make(const std::string& section) {
  return config::load_as<Transforms::Choice>("transform", section, "test.yaml").make();
}

at::Tensor image(std::int64_t channels, std::int64_t height, std::int64_t width) {
  return at::arange(channels * height * width, at::kLong).remainder(253).to(at::kByte).view({channels, height, width});
}

at::Tensor apply(const Transform& transform, const at::Tensor& to, std::uint64_t seed) {
  RandomStream random(seed);
  return transform.apply(to, random);
}

class EveryTransform : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Registered, EveryTransform, ::testing::ValuesIn(Transforms::global().names()),
                         [](const auto& info) { return info.param; });

TEST_P(EveryTransform, IsAFunctionOfImageAndSeed) {
  const auto transform = make(GetParam());
  for (const std::int64_t channels : {1, 3}) {
    const at::Tensor original = image(channels, 40, 50), kept = original.clone();
    bool differs = false;
    const at::Tensor first = apply(*transform, original, 0).clone();
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const at::Tensor result = apply(*transform, original, seed);
      ASSERT_EQ(result.scalar_type(), at::kByte);
      ASSERT_EQ(result.size(0), channels);
      ASSERT_TRUE(at::equal(result, apply(*transform, original, seed)));
      differs = differs || !result.equal(first);
    }
    EXPECT_TRUE(at::equal(original, kept)) << "the image was written to";
    if (channels == 3) {
      EXPECT_EQ(differs, transform->draws());
    }
  }
}

TEST(Resize, ScalesTheShorterSideOrBoth) {
  EXPECT_EQ(apply(*make("{name: resize, size: 20}"), image(3, 40, 60), 0).sizes(), (at::IntArrayRef{3, 20, 30}));
  EXPECT_EQ(apply(*make("{name: resize, size: 20}"), image(3, 60, 40), 0).sizes(), (at::IntArrayRef{3, 30, 20}));
  EXPECT_EQ(apply(*make("{name: resize, size: 20, square: true}"), image(1, 60, 40), 0).sizes(),
            (at::IntArrayRef{1, 20, 20}));
}

TEST(CenterCrop, TakesTheMiddle) {
  const at::Tensor original = image(3, 10, 7);
  EXPECT_TRUE(
      at::equal(apply(*make("{name: center_crop, size: 4}"), original, 0), original.narrow(1, 3, 4).narrow(2, 2, 4)));
}

TEST(RandomCrop, ComesFromEveryPlace) {
  const auto crop = make("{name: random_crop, size: 4, padding: 1}");
  const at::Tensor original = image(1, 5, 5) + 1;  // the crop has 4 x 4 possible places
  std::set<std::vector<std::uint8_t>> seen;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const at::Tensor result = apply(*crop, original, seed).contiguous();
    ASSERT_EQ(result.sizes(), (at::IntArrayRef{1, 4, 4}));
    const auto* bytes = result.const_data_ptr<std::uint8_t>();
    seen.insert(std::vector(bytes, bytes + result.numel()));
  }
  EXPECT_EQ(seen.size(), 16);
}

TEST(RandomResizedCrop, HasItsSizeWhateverTheImage) {
  const auto crop = make("{name: random_resized_crop, size: 16}");
  for (const auto& [height, width] : std::vector<std::pair<int, int>>{{5, 300}, {300, 5}, {16, 16}, {1, 1}}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      ASSERT_EQ(apply(*crop, image(3, height, width), seed).sizes(), (at::IntArrayRef{3, 16, 16}));
    }
  }
  EXPECT_THAT([] { make("{name: random_resized_crop, scale: [1, 0.5]}"); },
              ThrowsMessage<ConfigError>(HasSubstr("random_resized_crop: scale needs two numbers, the smaller one")));
}

TEST(Flip, FlipsAsOftenAsConfigured) {
  const at::Tensor original = image(3, 4, 6);
  int flipped = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const at::Tensor result = apply(*make("{name: flip, probability: 0.3}"), original, seed);
    if (at::equal(result, original)) continue;
    ++flipped;
    ASSERT_TRUE(at::equal(result, original.flip({2})));
  }
  EXPECT_NEAR(flipped, 300, 75);  // five standard deviations
}

TEST(TransformChain, AddingATransformDoesNotChangeTheOthers) {
  const auto chain = [](const std::string& more) {
    struct List {
      std::vector<TransformConfig> transforms;
      void visit(config::Visitor& v) { v("transforms", transforms, "changes"); }
    };
    const auto list = config::load_as<List>(
        "list", "{transforms: [{transform: {name: random_crop, size: 8}}" + more + "]}", "test.yaml");
    return TransformChain(list.transforms).apply(image(3, 20, 20), 5);
  };
  EXPECT_TRUE(at::equal(chain(""), chain(", {transform: {name: flip, probability: 0}}")));
  EXPECT_TRUE(at::equal(chain("").flip({2}), chain(", {transform: {name: flip, probability: 1}}")));
}

}  // namespace
}  // namespace phalanx
