// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/transformed_images.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <set>
#include <string>

#include "datasets/images/image_config.h"
#include "datasets/testing/image_files.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::smooth_image;
using ::testing::ThrowsMessage;

// Ten images of several sizes, some of which cannot be read. If `line`, image 7 is only a line of pixels.
class Images final : public ImageSource {
 public:
  explicit Images(std::set<std::int64_t> corrupt = {}, bool line = false) : corrupt_(std::move(corrupt)), line_(line) {}

  std::int64_t size() const override { return 10; }
  std::int64_t label(std::int64_t index) const override { return index % 3; }
  at::Tensor image(std::int64_t index) const override {
    if (corrupt_.contains(index)) throw DataError(name(index) + ": damaged");
    if (line_ && index == 7) return at::zeros({3, 1, 100'000}, at::kByte);
    if (line_ && index == 8) throw std::bad_alloc();
    return smooth_image(3, 20 + index, 30 - index, static_cast<double>(index));
  }
  std::string name(std::int64_t index) const override { return "image " + std::to_string(index); }

 private:
  std::set<std::int64_t> corrupt_;
  bool line_;
};

std::shared_ptr<const Dataset> samples(const std::string& fields, bool training, std::set<std::int64_t> corrupt = {}) {
  const auto config = config::load_as<ImageConfig>("dataset", "{side: 16" + fields + "}", "test.yaml");
  return config.samples(std::make_shared<Images>(std::move(corrupt)), 3, training);
}

Batch gather(const Dataset& dataset, const std::vector<std::int64_t>& indices, std::uint64_t seed = 1) {
  Batch batch;
  dataset.gather(indices, seed, batch);
  return batch;
}

TEST(TransformedImages, AreNormalised) {
  const auto dataset = samples(
      ", mean: [0.5, 0.25, 0], deviation: [0.5, 1, 2], test_transforms: [{transform: "
      "{name: center_crop, size: 16}}]",
      false);
  const auto batch = gather(*dataset, {4});
  const at::Tensor pixels = smooth_image(3, 24, 26, 4).narrow(1, 4, 16).narrow(2, 5, 16).to(at::kFloat) / 255;
  EXPECT_TRUE(at::allclose(batch.inputs[0][0][0], (pixels[0] - 0.5) / 0.5, 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(batch.inputs[0][0][1], pixels[1] - 0.25, 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(batch.inputs[0][0][2], pixels[2] / 2, 1e-5, 1e-5));
  EXPECT_EQ(batch.targets[0].item<int>(), 1);
}

TEST(TransformedImages, DoNotDependOnThreadsOrTheRestOfTheBatch) {
  const auto dataset = samples(
      ", transforms: [{transform: rand_augment}, {transform: {name: random_resized_crop, "
      "size: 16}}, {transform: color_jitter}, {transform: erase}]",
      true);
  const std::vector<std::int64_t> indices{3, 9, 0, 7, 1, 4};
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const auto alone = gather(*dataset, indices);
  at::set_num_threads(4);
  const auto many = gather(*dataset, indices);
  at::set_num_threads(before);
  EXPECT_TRUE(at::equal(alone.inputs[0], many.inputs[0]));
  EXPECT_TRUE(at::equal(gather(*dataset, {7}).inputs[0][0], many.inputs[0][3]));
  EXPECT_FALSE(at::equal(gather(*dataset, {7}, 2).inputs[0][0], many.inputs[0][3])) << "another seed";
}

TEST(TransformedImages, AreNotChangedAtRandomOutsideTraining) {
  const auto training = samples("", true), testing = samples("", false);
  ASSERT_NE(training->unchanged(), nullptr);
  EXPECT_EQ(testing->unchanged(), nullptr);
  EXPECT_TRUE(at::equal(gather(*training->unchanged(), {2, 5}).inputs[0], gather(*testing, {2, 5}).inputs[0]));
  EXPECT_FALSE(at::equal(gather(*training, {2, 5}).inputs[0], gather(*testing, {2, 5}).inputs[0]));
}

TEST(TransformedImages, FailAtAnImageThatCannotBeRead) {
  EXPECT_THAT([] { gather(*samples("", false, {4}), {3, 4}); },
              ThrowsMessage<DataError>(HasSubstr("image 4: damaged")));
}

TEST(TransformedImages, SkipUnreadableImagesIfConfigured) {
  const auto dataset = samples(", skip_corrupt: 2", false, {4, 9});
  ::testing::internal::CaptureStderr();
  const auto batch = gather(*dataset, {4, 9});
  const std::string message = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(message, HasSubstr("Warning: an image that cannot be read is skipped"));
  EXPECT_EQ(message.find("Warning:"), message.rfind("Warning:")) << "the log names the others";
  const auto others = gather(*dataset, {5, 0});
  EXPECT_TRUE(at::equal(batch.inputs[0], others.inputs[0]));
  EXPECT_TRUE(at::equal(batch.targets[0], others.targets[0]));
  EXPECT_THAT([&] { gather(*dataset, {4}); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("image 4: damaged"),
                                             HasSubstr("number 3 of the images that cannot be read"),
                                             HasSubstr("dataset.skip_corrupt allows 2"))));
}

TEST(TransformedImages, NameTheImageThatTakesTooMuchMemory) {
  const auto config = config::load_as<ImageConfig>(
      "dataset",
      "{side: 16, test_transforms: [{transform: {resize: {size: 2000}}}, {transform: {center_crop: {size: 16}}}]}",
      "test.yaml");
  const auto dataset = config.samples(std::make_shared<Images>(std::set<std::int64_t>{}, true), 3, false);
  EXPECT_THAT([&] { gather(*dataset, {7}); },
              ThrowsMessage<DataError>(HasSubstr("image 7: resizing 100000 x 1 pixels to 200000000 x 2000")));
  EXPECT_THAT([&] { gather(*dataset, {8}); },
              ThrowsMessage<DataError>(HasSubstr("image 8: there is not enough memory")));
}

TEST(TransformedImages, RefuseTransformsThatLeaveAnotherShape) {
  EXPECT_THAT([] { gather(*samples(", test_transforms: [{transform: flip}]", false), {3}); },
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("leave image 3 with [3, 23, 27]"), HasSubstr("a sample has [3, 16, 16]"))));
}

TEST(TransformedImages, RefuseStatisticsOfOtherChannels) {
  EXPECT_THAT([] { samples(", mean: [0.5, 0.5]", false); },
              ThrowsMessage<ConfigError>(HasSubstr("mean has 2 numbers")));
  EXPECT_THAT([] { samples(", mean: [0.5, 0.5], deviation: [1, 1]", false); },
              ThrowsMessage<ConfigError>(HasSubstr("one for each of 3 channels, but have 2")));
}

}  // namespace
}  // namespace phalanx
