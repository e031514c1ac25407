#include "datasets/images/decode.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "datasets/images/encode.h"
#include "datasets/testing/image_files.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::jpeg_bytes;
using testing::smooth_image;
using ::testing::ThrowsMessage;

double largest_difference(const at::Tensor& one, const at::Tensor& other) {
  return (one.to(at::kFloat) - other.to(at::kFloat)).abs().max().item<double>();
}

TEST(DecodeImage, PngsAreExact) {
  const at::Tensor color = smooth_image(3, 17, 23), grey = smooth_image(1, 17, 23);
  EXPECT_TRUE(at::equal(decode_image(encode_png(color), {}, "a.png"), color));
  EXPECT_TRUE(at::equal(decode_image(encode_png(grey), {.color = false}, "a.png"), grey));
  EXPECT_TRUE(at::equal(decode_image(encode_png(grey), {}, "a.png"), grey.expand({3, 17, 23})));
}

TEST(DecodeImage, WhatIsTransparentLiesOnBlack) {
  const at::Tensor color = smooth_image(3, 8, 8), none = at::full({1, 8, 8}, 0, at::kByte);
  const at::Tensor image = decode_image(encode_png(at::concat({color, none})), {}, "a.png");
  EXPECT_EQ(image.max().item<int>(), 0);
}

TEST(DecodeImage, JpegsAreClose) {
  const at::Tensor color = smooth_image(3, 64, 48);
  EXPECT_LT(largest_difference(decode_image(jpeg_bytes(color), {}, "a.jpg"), color), 12);
  const at::Tensor grey = smooth_image(1, 64, 48);
  EXPECT_LT(largest_difference(decode_image(jpeg_bytes(grey), {.color = false}, "a.jpg"), grey), 6);
  EXPECT_EQ(decode_image(jpeg_bytes(grey), {}, "a.jpg").size(0), 3);
}

TEST(DecodeImage, JpegsMayBeDecodedAtAPartOfTheirSize) {
  const std::string bytes = jpeg_bytes(smooth_image(3, 200, 160));
  const auto side = [&](std::int64_t smallest) {
    return decode_image(bytes, {.smallest_side = smallest}, "a.jpg").sizes().vec();
  };
  EXPECT_EQ(side(0), (std::vector<std::int64_t>{3, 200, 160}));
  EXPECT_EQ(side(81), (std::vector<std::int64_t>{3, 200, 160}));
  EXPECT_EQ(side(80), (std::vector<std::int64_t>{3, 100, 80}));
  EXPECT_EQ(side(20), (std::vector<std::int64_t>{3, 25, 20}));
}

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// A grey PNG of 69 bytes; `header` has its width and height, and the checksum of these.
std::string tiny_png(const std::string& header) {
  return from_hex("89504e470d0a1a0a" + header +
                  "0000000c4944415478da6360a03d000000640001b899ef990000000049454e44ae426082");
}

TEST(DecodeImage, RefusesSizesThatWouldTakeAllMemory) {
  const auto refused = [](const std::string& bytes, const std::string& why) {
    EXPECT_THAT([&] { decode_image(bytes, {}, "bomb"); },
                ThrowsMessage<DataError>(AllOf(HasSubstr("bomb: "), HasSubstr(why))));
  };
  refused(tiny_png("0000000d494844520000ea600000ea600800000000a5b92a9e"),
          "an image of 60000 x 60000 pixels; at most 178956970 are read");
  refused(tiny_png("0000000d49484452000027100000271008000000009f253dfb"), "69 bytes cannot hold 10000 x 10000 pixels");
  std::string jpeg = jpeg_bytes(smooth_image(3, 64, 48));
  const auto frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xff\x00\xff\x00", 4);
  refused(jpeg, "an image of 65280 x 65280 pixels");
  EXPECT_NO_THROW(decode_image(encode_png(at::zeros({1, 2000, 2000}, at::kByte)), {}, "all black"));
}

TEST(DecodeImage, RefusesWhatIsDamaged) {
  for (const bool png : {false, true}) {
    const at::Tensor image = smooth_image(3, 64, 64);
    const std::string bytes = png ? encode_png(image) : jpeg_bytes(image);
    for (const auto length : {bytes.size() / 2, std::size_t{20}, std::size_t{5}}) {
      EXPECT_THAT([&] { decode_image(bytes.substr(0, length), {}, "cat.img"); },
                  ThrowsMessage<DataError>(AllOf(HasSubstr("cat.img: "), HasSubstr("a damaged"))))
          << length << (png ? " bytes of a PNG" : " bytes of a JPEG");
    }
  }
  EXPECT_THAT([] { decode_image("GIF89a", {}, "cat.img"); },
              ThrowsMessage<DataError>(HasSubstr("cat.img: byte 0: neither a JPEG nor a PNG")));
}

}  // namespace
}  // namespace phalanx
