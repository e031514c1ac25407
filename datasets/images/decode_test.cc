#include "datasets/images/decode.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

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

// A PNG whose header has other sides, and a checksum that knows of them.
std::string png_of_sides(std::uint32_t width, std::uint32_t height) {
  std::string bytes = encode_png(smooth_image(1, 8, 8));
  const auto put = [&](std::size_t place, std::uint32_t number) {
    for (int i = 0; i < 4; ++i) bytes[place + static_cast<std::size_t>(i)] = static_cast<char>(number >> (24 - 8 * i));
  };
  put(16, width);
  put(20, height);
  put(29, static_cast<std::uint32_t>(::crc32(0, reinterpret_cast<const unsigned char*>(bytes.data()) + 12, 17)));
  return bytes;
}

TEST(DecodeImage, RefusesASizeThatWouldTakeAllMemory) {
  const auto refused = [](const std::string& bytes, const std::string& why) {
    EXPECT_THAT([&] { decode_image(bytes, {}, "a.png"); },
                ThrowsMessage<DataError>(AllOf(HasSubstr("a.png: "), HasSubstr(why))));
  };
  refused(png_of_sides(50'000, 50'000), "is an image of 50000 x 50000 pixels, more than the 134217728");
  refused(png_of_sides(1'000'000, 134), "bytes cannot hold 1000000 x 134 pixels");
  auto jpeg = jpeg_bytes(smooth_image(3, 16, 16));
  const auto sides = jpeg.find("\xff\xc0") + 5;
  refused(jpeg.replace(sides, 4, "\xff\x00\xff\x00", 4), "is an image of 65280 x 65280 pixels, more than the 134217728");
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
