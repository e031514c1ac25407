// SPDX-License-Identifier: Apache-2.0
#include "framework/base/storage/safetensors.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/storage/tensor_memory.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

std::string header_length(std::uint64_t length) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(length >> shift);
  return bytes;
}

class Safetensors : public ::testing::Test {
 protected:
  NamedTensors reloaded(const NamedTensors& tensors) const {
    save_safetensors(path_, tensors);
    return load_safetensors(path_);
  }

  // Loads a file that consists of this header and data.
  NamedTensors load(const std::string& header, const std::string& data) const {
    write_atomically(path_, header_length(header.size()) + header + data);
    return load_safetensors(path_);
  }

  // Expects an error for a file whose only tensor "w" has this description, with 8 bytes of data.
  void expect_refused(const std::string& description) const {
    EXPECT_THAT([&] { load(R"({"w":)" + description + "}", "12345678"); },
                ThrowsMessage<DataError>(StartsWith(path_ + ": the header (bytes 8 to ")))
        << description;
  }

  const std::string path_ = ::testing::TempDir() + "/weights.safetensors";
};

TEST_F(Safetensors, ComeBackInOrderWithDtypeShapeAndBits) {
  const NamedTensors tensors{{"z", at::arange(6, at::kFloat).reshape({2, 3}) / 7},
                             {"a.weight", at::full({3, 1, 2}, 1.0 / 3, at::kDouble)},
                             {"count", at::tensor({std::int64_t{1} << 40}, at::kLong)},
                             {"int", at::arange(3, at::kInt)},
                             {"byte", at::tensor({0, 255}, at::kByte)},
                             {"mask", at::tensor({1, 0, 1}, at::kInt).to(at::kBool)},
                             {"brain", at::full({3}, 1.0 / 3, at::kBFloat16)},
                             {"half", at::full({2}, 1.0 / 3, at::kHalf)},
                             {"small", at::tensor({-1, 5}, at::kChar)},
                             {"short", at::tensor({-1, 500}, at::kShort)},
                             {"scalar", at::full({}, 5.0)}};
  const auto back = reloaded(tensors);
  ASSERT_EQ(back.size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(back[i].first, tensors[i].first);
    EXPECT_EQ(back[i].second.scalar_type(), tensors[i].second.scalar_type()) << tensors[i].first;
    EXPECT_TRUE(at::equal(back[i].second, tensors[i].second)) << tensors[i].first;
  }
}

TEST_F(Safetensors, EmptyTensorsOfAnyShapeComeBack) {
  const auto back = reloaded({{"a", at::zeros({0})}, {"b", at::zeros({5, 7, 0})}, {"c", at::zeros({0, 1000000})}});
  EXPECT_EQ(back.at(0).second.sizes(), (at::IntArrayRef{0}));
  EXPECT_EQ(back.at(1).second.sizes(), (at::IntArrayRef{5, 7, 0}));
  EXPECT_EQ(back.at(2).second.sizes(), (at::IntArrayRef{0, 1000000}));
}

TEST_F(Safetensors, ViewsAndTrainedParametersAreWrittenAsTheyLook) {
  const at::Tensor square = at::arange(4, at::kFloat).reshape({2, 2}).requires_grad_();
  const auto back = reloaded({{"transposed", square.t()}, {"column", square.select(1, 1)}});
  EXPECT_TRUE(at::equal(back.at(0).second, square.detach().t()));
  EXPECT_TRUE(at::equal(back.at(1).second, at::tensor({1.0f, 3.0f})));
  EXPECT_FALSE(back.at(0).second.requires_grad());
}

TEST_F(Safetensors, AFileMayHaveNoTensors) { EXPECT_TRUE(reloaded({}).empty()); }

// Other programs expect exactly these bytes.
TEST_F(Safetensors, LayoutIsThatOfTheFormat) {
  save_safetensors(path_, {{"w", at::tensor({1.0f, -2.0f})}, {"n", at::tensor({std::int64_t{258}})}});
  std::string header = R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                       R"("n":{"dtype":"I64","shape":[1],"data_offsets":[8,16]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::string data("\x00\x00\x80\x3f\x00\x00\x00\xc0\x02\x01\x00\x00\x00\x00\x00\x00", 16);
  EXPECT_EQ(read_file(path_), header_length(header.size()) + header + data);
}

TEST_F(Safetensors, FilesOfOtherProgramsLoad) {
  const auto tensors = load(R"({"__metadata__":{"format":"pt"},"b":{"data_offsets":[4,8],"dtype":"I32","shape":[]},)"
                            R"("a":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]}}   )",
                            std::string("\1\2\3\4\5\0\0\0", 8));
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].first, "b");
  EXPECT_EQ(tensors[0].second.item<int>(), 5);
  EXPECT_EQ(tensors[1].second[1][0].item<int>(), 3);
}

TEST_F(Safetensors, RefusesDtypesThatItDoesNotWrite) {
  EXPECT_THAT([&] { save_safetensors(path_, {{"phase", at::zeros({2}, at::kComplexFloat)}}); },
              ThrowsMessage<DataError>(path_ + ": tensor phase has dtype ComplexFloat, which is not supported"));
}

TEST_F(Safetensors, RefusesTwoTensorsOfOneName) {
  EXPECT_THAT([&] { save_safetensors(path_, {{"w", at::zeros({2})}, {"w", at::zeros({3})}}); },
              ThrowsMessage<DataError>(path_ + ": two tensors are called w"));
}

TEST_F(Safetensors, AFileCutAnywhereIsRefused) {
  save_safetensors(path_, {{"w", at::full({3}, 1.5)}, {"b", at::full({1}, 2.5)}});
  const std::string whole = read_file(path_);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_atomically(path_, whole.substr(0, length));
    EXPECT_THAT([&] { load_safetensors(path_); }, ThrowsMessage<DataError>(StartsWith(path_ + ": "))) << length;
  }
}

TEST_F(Safetensors, AMissingFileIsNamed) {
  EXPECT_THAT([] { load_safetensors("/absent/w.safetensors"); },
              ThrowsMessage<DataError>("/absent/w.safetensors: No such file or directory"));
}

TEST_F(Safetensors, AFolderIsNamed) {
  const std::string folder = ::testing::TempDir();
  EXPECT_THAT([&] { load_safetensors(folder); }, ThrowsMessage<DataError>(StartsWith(folder + ": ")));
}

TEST_F(Safetensors, AHeaderLongerThanTheFileIsRefusedWithBothLengths) {
  for (const std::uint64_t length : {std::uint64_t{3}, std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
    write_atomically(path_, header_length(length) + "{}");
    EXPECT_THAT([&] { load_safetensors(path_); },
                ThrowsMessage<DataError>(AllOf(HasSubstr(path_), HasSubstr(std::to_string(length) + " bytes"),
                                               HasSubstr("the file has 10"))));
  }
}

TEST_F(Safetensors, AHeaderThatIsNotAnObjectOfTensorsIsRefused) {
  for (const char* header :
       {"", "{", "{\"w\":", "null", "[]", "3", "{} {}", "{\"w\":null}", "{\"w\":[1,2]}", "\xff\xfe"}) {
    EXPECT_THAT([&] { load(header, ""); }, ThrowsMessage<DataError>(StartsWith(path_ + ": the header"))) << header;
  }
}

TEST_F(Safetensors, AHeaderNestedWithoutEndIsRefused) {
  EXPECT_THROW(load(std::string(1'000'000, '['), ""), DataError);
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_THAT([&] { load(R"({"a":{"dtype":"F32","shape":)" + deep + R"(,"data_offsets":[0,4]}})", "1234"); },
              ThrowsMessage<DataError>(HasSubstr("nested deeper than 256 levels")));
}

TEST_F(Safetensors, AnUnsupportedDtypeIsNotReportedAsDamage) {
  for (const std::string dtype : {"F8_E4M3", "F8_E5M2", "C64", "U16"}) {
    EXPECT_THAT(
        [&] { load(R"({"a":{"dtype":")" + dtype + R"(","shape":[1],"data_offsets":[0,1]}})", "1"); },
        ThrowsMessage<DataError>(StartsWith(path_ + ": tensor a has dtype " + dtype + ", which is not supported")));
  }
}

TEST_F(Safetensors, EachByteBelongsToExactlyOneTensor) {
  const auto refused = [&](const std::string& header, const std::string& why) {
    EXPECT_THAT([&] { load(header, "123456789012"); },
                ThrowsMessage<DataError>(AllOf(StartsWith(path_ + ": the header"), HasSubstr(why))));
  };
  const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  const auto b = [](const std::string& offsets, const std::string& shape) {
    return R"("b":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
  };
  refused("{" + b("[0,8]", "[2]") + "," + b("[4,12]", "[2]").replace(1, 1, "c") + "}",
          "c overlaps the tensor before it");
  refused("{" + b("[8,12]", "[1]") + "," + a + "}", "no tensor has the bytes from 4 to b");
  refused("{" + a + "," + b("[4,8]", "[1]") + "}", "4 bytes follow the last tensor");
  refused("{" + a + "," + a + "}", "has two members called \"a\"");
  EXPECT_EQ(load("{" + b("[4,12]", "[2]") + "," + a + "}", "123456789012").size(), 2u) << "in any order";
}

TEST_F(Safetensors, OffsetsOutsideTheDataAreRefused) {
  expect_refused(R"({"dtype":"F32","shape":[2],"data_offsets":[4,12]})");
  expect_refused(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})");
  expect_refused(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})");
  expect_refused(R"({"dtype":"F32","shape":[2],"data_offsets":[-8,0]})");
  expect_refused(R"({"dtype":"F32","shape":[2],"data_offsets":[18446744073709551612,4]})");
  expect_refused(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})");
  expect_refused(R"({"dtype":"F32","shape":[2]})");
}

TEST_F(Safetensors, ShapesThatOverflowAreRefusedBeforeAnythingIsAllocated) {
  for (const char* shape : {"[4611686018427387904]", "[2305843009213693952,8]", "[4294967296,4294967296]", "[-1]",
                            "[1,-2]", "[9223372036854775807,9223372036854775807]", "[18446744073709551615]",
                            "[65536,65536,65536,65536]", "[1.5]", "\"2\""}) {
    for (const char* offsets : {"[0,0]", "[0,8]"}) {
      expect_refused(std::string(R"({"dtype":"F64","shape":)") + shape + R"(,"data_offsets":)" + offsets + "}");
    }
  }
}

TEST(TensorMemory, ErrorsNameFileAndTensor) {
  EXPECT_THAT([] { tensor_memory("big.safetensors", "wte", {std::int64_t{1} << 56}, at::kFloat); },
              ThrowsMessage<DataError>(
                  "big.safetensors: tensor wte: there is not enough memory for its 288230376151711744 bytes"));
}

TEST_F(Safetensors, AnUnwritablePathIsNamed) {
  EXPECT_THAT([] { save_safetensors("/proc/absent/w", {{"w", at::zeros({2})}}); },
              ThrowsMessage<DataError>(StartsWith("/proc/absent/w: ")));
}

}  // namespace
}  // namespace phalanx
