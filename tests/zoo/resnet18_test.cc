// SPDX-License-Identifier: Apache-2.0
// Tests resnet18. The golden file and the figures come from torchvision 0.28's resnet18(num_classes=10) with PyTorch
// 2.13; for stem: small, with conv1 = Conv2d(3, 64, 3, 1, 1, bias=False) and maxpool = Identity().
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/tensor.h>
#include <c10/core/MemoryFormat.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "tests/zoo/model_under_test.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using testing::make_model;
using ::testing::ThrowsMessage;

const SampleSpec kSmall = classification_samples({3, 32, 32}, 10), kLarge = classification_samples({3, 64, 64}, 10);
constexpr const char* kImagenet = "{name: resnet18, stem: imagenet}";

TEST(ResNet18, HasTorchvisionsNamesAndShapes) {
  const auto model = make_model("resnet18", kSmall);
  EXPECT_EQ(testing::layout_of(*model), read_file("tests/zoo/resnet18.golden"));
  EXPECT_EQ(testing::parameters_of(*model), 11'173'962);
  const auto names = testing::names_of(*model);
  EXPECT_EQ(testing::names_of(*make_model(kImagenet, kLarge)), names);
  EXPECT_EQ(testing::parameters_of(*make_model(kImagenet, classification_samples({3, 224, 224}, 1000))), 11'689'512);
}

// With the stem of the paper, the same seed gives the same initial values and outputs.
TEST(ResNet18, StartsAndComputesAsTorchvisionsDoes) {
  const at::NoGradGuard no_grad;
  const auto model = make_model(kImagenet, kLarge, 1);
  model->eval();
  const auto expected = at::tensor({0.012308,  -0.100750, 0.063707,  0.349027,  -0.140291, 0.372827, -0.163061,
                                    -0.062075, -0.085182, 0.412481,  0.056274,  -0.073690, 0.066149, 0.327768,
                                    -0.183062, 0.343613,  -0.206019, -0.041302, -0.138280, 0.374549})
                            .to(at::kFloat)
                            .view({2, 10});
  const auto output = model->forward(testing::waves({2, 3, 64, 64}));
  EXPECT_TRUE(at::allclose(output, expected, 1e-3, 1e-4)) << output;
}

// Uses double precision: batch norm over two images multiplies the rounding errors of single precision by ten thousand.
TEST(ResNet18, ComputesAsTorchvisionsWithTheSmallStem) {
  const auto model = make_model("resnet18", kSmall);
  testing::fill(*model);
  for (auto& [name, values] : testing::state_of(*model)) {
    if (values.is_floating_point()) values.set_data(values.to(at::kDouble));
  }
  model->train();
  const auto expected =
      at::tensor({0.513655341,  0.689080997,  -1.914812095, 3.421548202, -4.862324769, 5.817053030,  -6.457775759,
                  7.190369039,  -7.898825965, 8.110364218,  1.369528359, 0.148920676,  -1.707593784, 3.553881647,
                  -5.329988795, 6.605130756,  -7.541130035, 8.534444275, -9.460750525, 9.840317736},
                 at::kDouble)
          .view({2, 10});
  const auto output = model->forward(testing::waves({2, 3, 32, 32}).to(at::kDouble));
  EXPECT_TRUE(at::allclose(output, expected, 1e-7, 1e-7)) << output;
  const NamedTensors buffers = model->named_buffers();
  const auto variance =
      std::ranges::find(buffers, "layer4.1.bn2.running_var", &NamedTensors::value_type::first)->second;
  EXPECT_NEAR(variance[0].item<double>(), 0.9174816669976987, 1e-9) << "the statistics that testing takes";
}

TEST(ResNet18, StartsWithTheVarianceThatReluNeeds) {
  const auto model = make_model("resnet18", kSmall);
  for (const auto& [name, tensor] : testing::state_of(*model)) {
    if (tensor.dim() == 4) {
      const double fan_out = static_cast<double>(tensor.size(0) * tensor.size(2) * tensor.size(3));
      EXPECT_NEAR(tensor.std().item<double>() / std::sqrt(2 / fan_out), 1, 0.06) << name;
    } else if (name.find("bn") != std::string::npos && name.ends_with("weight")) {
      EXPECT_TRUE(tensor.eq(1).all().item<bool>()) << name;
    } else if (name.find("bn") != std::string::npos && name.ends_with("bias")) {
      EXPECT_TRUE(tensor.eq(0).all().item<bool>()) << name;
    }
  }
}

TEST(ResNet18, TakesChannelsLast) {
  const at::NoGradGuard no_grad;
  const auto model = make_model("resnet18", kSmall);
  const auto input = testing::waves({2, 3, 32, 32});
  const auto last = input.contiguous(at::MemoryFormat::ChannelsLast);
  ASSERT_FALSE(last.is_contiguous());
  EXPECT_TRUE(at::allclose(model->forward(last), model->forward(input), 1e-3, 1e-4));
}

TEST(ResNet18, FitsPicturesOfOtherSizesAndChannels) {
  EXPECT_EQ(
      make_model("resnet18", classification_samples({1, 9, 30}, 4))->forward(testing::waves({1, 1, 9, 30})).sizes(),
      (at::IntArrayRef{1, 4}))
      << "one picture of the least size has a variance";
  EXPECT_EQ(
      make_model(kImagenet, classification_samples({3, 33, 33}, 4))->forward(testing::waves({1, 3, 33, 33})).sizes(),
      (at::IntArrayRef{1, 4}));
}

TEST(ResNet18, RefusesSamplesThatAreTooSmallOrNotPictures) {
  const auto refused = [](const std::string& message) { return ThrowsMessage<ConfigError>(HasSubstr(message)); };
  EXPECT_THAT([] { make_model("resnet18", classification_samples({3, 8, 32}, 10)); },
              refused("model resnet18 with stem small needs images [channels, height, width] of at least 9 x 9 pixels, "
                      "but a sample is [3, 8, 32]"));
  EXPECT_THAT([] { make_model(kImagenet, kSmall); }, refused("stem imagenet needs images [channels, height, width] of "
                                                             "at least 33 x 33"));
  EXPECT_THAT([] { make_model("resnet18", language_samples(64, 10)); }, refused("but a sample is [64] indices"));
  EXPECT_THAT([] { make_model("{name: resnet18, stem: large}", kSmall); }, refused("stem"));
}

}  // namespace
}  // namespace phalanx
