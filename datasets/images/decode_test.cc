// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/decode.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "datasets/images/encode.h"
#include "datasets/testing/image_files.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using testing::from_hex;
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

at::Tensor filled(const std::vector<std::int64_t>& pixel, std::int64_t height = 2, std::int64_t width = 2) {
  return at::tensor(pixel, at::kByte).view({-1, 1, 1}).expand({-1, height, width}).contiguous();
}

std::vector<int> first_pixel(const at::Tensor& image) {
  std::vector<int> values;
  for (std::int64_t c = 0; c < image.size(0); ++c) values.push_back(image[c][0][0].item<int>());
  return values;
}

TEST(DecodeImage, DropsAlphaUnlessABackgroundIsGiven) {
  const auto png = encode_png(filled({200, 100, 50, 128}));
  EXPECT_EQ(first_pixel(decode_image(png, {}, "a.png")), (std::vector{200, 100, 50}));
  EXPECT_EQ(first_pixel(decode_image(png, {.background = {0, 255, 255}}, "a.png")), (std::vector{100, 177, 152}));
  EXPECT_EQ(first_pixel(decode_image(encode_png(filled({200, 100, 50, 0})), {.background = {1, 2, 3}}, "a.png")),
            (std::vector{1, 2, 3}));
  const auto grey = encode_png(filled({200, 128}));
  EXPECT_EQ(first_pixel(decode_image(grey, {}, "a.png")), (std::vector{200, 200, 200}));
  EXPECT_EQ(first_pixel(decode_image(grey, {.color = false, .background = {0, 0, 0}}, "a.png")), (std::vector{100}));
}

TEST(DecodeImage, LuminanceIsTheSameInAllFormats) {
  const auto red = filled({255, 0, 0}, 16, 16);
  EXPECT_EQ(first_pixel(decode_image(encode_png(red), {.color = false}, "a.png")), (std::vector{76}));
  EXPECT_EQ(first_pixel(decode_image(jpeg_bytes(red), {.color = false}, "a.jpg")), (std::vector{76}));
}

// libpng's own conversion to 8 bits would apply a gamma.
TEST(DecodeImage, ValuesOf16BitsBecomeTheirUpperByte) {
  const auto color = testing::png_of_16_bits({0x8080, 0x12ff, 0xff00});
  EXPECT_EQ(first_pixel(decode_image(color, {}, "a.png")), (std::vector{0x80, 0x12, 0xff}));
  EXPECT_EQ(first_pixel(decode_image(testing::png_of_16_bits({0x80ff}), {.color = false}, "a.png")),
            (std::vector{0x80}));
}

// Cyan, magenta, yellow and black, inverted as Adobe's programs write them, with and without conversion to YCCK.
TEST(DecodeImage, JpegsOfFourInksBecomeColor) {
  for (const bool ycck : {false, true}) {
    const auto bytes = testing::jpeg_of_inks(filled({255, 55, 155, 255}, 16, 16), ycck);
    EXPECT_LT(largest_difference(decode_image(bytes, {}, "a.jpg"), filled({255, 55, 155}, 16, 16)), 4) << ycck;
    const auto dark = testing::jpeg_of_inks(filled({255, 55, 155, 128}, 16, 16), ycck);
    EXPECT_LT(largest_difference(decode_image(dark, {}, "a.jpg"), filled({128, 28, 78}, 16, 16)), 4) << ycck;
  }
}

// The white corner is at (row, column) of the picture as the camera stored it.
TEST(DecodeImage, IsTurnedUprightIfAskedFor) {
  at::Tensor image = filled({0, 0, 0}, 16, 32);
  image.narrow(1, 0, 8).narrow(2, 0, 8).fill_(255);
  const auto corner = [&](const std::string& bytes, bool asked) {
    const auto turned = decode_image(bytes, {.turn_upright = asked}, "a.jpg");
    const auto right = turned.size(2) - 4, bottom = turned.size(1) - 4;
    const std::string shape = turned.size(1) > turned.size(2) ? "high, " : "wide, ";
    for (const std::int64_t row : {std::int64_t{4}, bottom}) {
      for (const std::int64_t column : {std::int64_t{4}, right}) {
        if (turned[0][row][column].item<int>() < 128) continue;
        return shape + (row == 4 ? "top " : "bottom ") + (column == 4 ? "left" : "right");
      }
    }
    return shape + "nowhere";
  };
  const std::vector<std::string> expected{"wide, top left",     "wide, top right",  "wide, bottom right",
                                          "wide, bottom left",  "high, top left",   "high, top right",
                                          "high, bottom right", "high, bottom left"};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const auto bytes = testing::with_orientation(jpeg_bytes(image), orientation);
    EXPECT_EQ(corner(bytes, true), expected[static_cast<std::size_t>(orientation - 1)]) << orientation;
    EXPECT_EQ(corner(bytes, false), "wide, top left") << orientation;
  }
  EXPECT_EQ(corner(jpeg_bytes(image), true), "wide, top left");
}

TEST(DecodeImage, WebPsAreDecoded) {
  const auto opaque = from_hex("524946461e000000574542505650384c110000002f0000000007508a2ad4a3ff8188e87f0000");
  EXPECT_EQ(first_pixel(decode_image(opaque, {}, "a.webp")), (std::vector{10, 20, 30}));
  EXPECT_EQ(first_pixel(decode_image(opaque, {.color = false}, "a.webp")), (std::vector{18}));
  const auto half = from_hex("524946461e000000574542505650384c110000002f0100001007508a2ad4a3808188e87f0000");
  const auto image = decode_image(half, {}, "a.webp");
  EXPECT_EQ(image.sizes(), (at::IntArrayRef{3, 1, 2}));
  EXPECT_EQ(first_pixel(image), (std::vector{10, 20, 30}));
  EXPECT_EQ(first_pixel(decode_image(half, {.background = {255, 255, 255}}, "a.webp")), (std::vector{132, 137, 142}));
  for (const std::size_t length : {12U, 20U, 30U}) {
    EXPECT_THAT([&] { decode_image(half.substr(0, length), {}, "a.webp"); },
                ThrowsMessage<DataError>(HasSubstr("a.webp: a damaged WebP")));
  }
}

TEST(IsDecoded, DependsOnTheSuffixAlone) {
  for (const char* suffix : {".jpg", ".JPEG", ".png", ".PNG", ".webp"}) EXPECT_TRUE(is_decoded(suffix)) << suffix;
  for (const char* suffix : {".gif", ".TIFF", ".bmp"}) EXPECT_TRUE(is_other_image(suffix)) << suffix;
  for (const char* suffix : {".txt", "", ".jpg2"}) EXPECT_FALSE(is_decoded(suffix) || is_other_image(suffix)) << suffix;
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

// Returns a grey PNG of 69 bytes. `header` has its width and height and their checksum.
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

// The length of an Exif chunk says 0x470004ff bytes.
TEST(DecodeImage, AllocatesNothingForAChunkThatIsLongerThanItsFile) {
  const std::string png = encode_png(filled({200, 100, 50}));
  const std::string chunk(
      "\x47\x00\x04\xff"
      "eXIf"
      "MM\0*",
      12);
  EXPECT_THAT([&] { decode_image(png.substr(0, 33) + chunk + png.substr(33), {}, "a.png"); },
              ThrowsMessage<DataError>(HasSubstr("the file ends early")));
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
              ThrowsMessage<DataError>(HasSubstr("cat.img: byte 0: not a JPEG, PNG or WebP")));
}

}  // namespace
}  // namespace phalanx
