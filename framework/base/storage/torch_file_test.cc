// SPDX-License-Identifier: Apache-2.0
#include "framework/base/storage/torch_file.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/storage/stored_zip.h"

namespace phalanx {
namespace {

using namespace std::string_literals;  // these strings may contain NUL

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

using Sizes = std::vector<std::int64_t>;

const std::string kGoldens = "framework/base/storage/goldens/";

std::string torch_scratch(const std::string& name) { return ::testing::TempDir() + "/" + name; }

std::map<std::string, at::Tensor> loaded(const std::string& path) {
  const TorchFile file(path);
  std::map<std::string, at::Tensor> tensors;
  for (const auto& tensor : file.tensors()) tensors.emplace(tensor.name, file.read(tensor));
  return tensors;
}

void expect_equal(const std::map<std::string, at::Tensor>& read, const std::map<std::string, at::Tensor>& wanted) {
  ASSERT_EQ(read.size(), wanted.size());
  for (const auto& [name, tensor] : wanted) {
    ASSERT_TRUE(read.contains(name)) << name;
    EXPECT_EQ(read.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(at::equal(read.at(name), tensor)) << name;
  }
}

auto refuses_torch_file(const std::string& path, const std::string& why) {
  return std::pair([path] { loaded(path); }, ThrowsMessage<DataError>(AllOf(StartsWith(path), HasSubstr(why))));
}

// Writes a file of this pickle. Its storage "0", if it has one, consists of these bytes.
std::string pickled(const std::string& body, const std::string& storage = "") {
  StoredZipWriter zip("x");
  zip.add("archive/data.pkl", "\x80\x02" + body);
  if (!storage.empty()) zip.add("archive/data/0", storage);
  const std::string path = torch_scratch("pickle.pt");
  write_atomically(path, zip.finish());
  return path;
}

std::string text(const std::string& words) {
  return 'X' + std::string{static_cast<char>(words.size()), 0, 0, 0} + words;
}

std::string number(std::int64_t value) {
  std::string bytes = "\x8a\x08";
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string tuple(const Sizes& values) {
  std::string all = "(";
  for (const auto value : values) all += number(value);
  return all + "t";
}

// Returns the pickle of a tensor that is a view of the storage "0", which has `elements` float32 elements.
std::string view(std::int64_t elements, std::int64_t offset, const Sizes& shape, const Sizes& strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\nFloatStorage\n" + text("0") +
         text("cpu") + number(elements) + "tQ" + number(offset) + tuple(shape) + tuple(strides) + "\x89)tR";
}

// Element k has the value k / 4, as make_torch_files.py sets it.
TEST(TorchFile, ReadsWhatTorchHasSaved) {
  auto all = loaded(kGoldens + "state_dict.pt");
  ASSERT_EQ(all.size(), 8u);
  const at::Tensor base = (at::arange(12, at::kFloat) / 4).reshape({3, 4});
  EXPECT_TRUE(at::equal(all.at("fc.weight"), base));
  EXPECT_TRUE(at::equal(all.at("fc.turned"), base.t()));
  EXPECT_TRUE(all.at("fc.turned").is_contiguous());
  EXPECT_TRUE(at::equal(all.at("fc.tail"), base.flatten().slice(0, 8, 10)));
  for (const auto& [name, dtype] :
       std::map<std::string, at::ScalarType>{{"half", at::kHalf}, {"brain", at::kBFloat16}, {"double", at::kDouble}}) {
    EXPECT_TRUE(at::equal(all.at(name), (at::arange(3, at::kFloat) / 4).to(dtype))) << name;
  }
  EXPECT_EQ(all.at("steps").item<std::int64_t>(), 7);
  EXPECT_EQ(all.at("none").sizes(), (std::vector<std::int64_t>{0, 2}));
}

TEST(TorchFile, FindsTheStateDictAmongOtherThings) {
  auto all = loaded(kGoldens + "nested.pt");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(at::equal(all.at("0.weight"), at::arange(1, 3, at::kFloat).reshape({1, 2})));
  EXPECT_EQ(all.at("0.bias").item<float>(), 3);
}

// Each file is laid out as trainers save it; `weights` is a dictionary of one tensor.
TEST(TorchFile, FindsTheStateDictUnderTheKeysOfTrainers) {
  const std::string weights = "}" + text("w") + view(1, 0, {1}, {1}) + "s";
  for (const std::string key :
       {"state_dict", "model_state_dict", "model_state", "model", "params_ema", "net", "generator"}) {
    const auto path = pickled("}" + text("epoch") + "K\x03s" + text(key) + weights + "s.", std::string(4, '\0'));
    EXPECT_EQ(loaded(path).size(), 1u) << key;
  }
  const auto several = pickled("}" + text("g") + weights + "s" + text("d") + weights + "s.", std::string(4, '\0'));
  const auto [load, throws] =
      refuses_torch_file(several, "has several dictionaries of tensors (g, d); save only the one to load");
  EXPECT_THAT(load, throws);
}

// The objects are argparse.Namespace by its reduce method and as a new object with attributes, a numpy scalar, a dtype,
// a path, a set, and a number of 128 bits. None of them is constructed.
TEST(TorchFile, SkipsOtherObjectsWithoutConstructingThem) {
  const std::string weights = "}" + text("w") + view(1, 0, {1}, {1}) + "s";
  for (const std::string& object :
       {"cargparse\nNamespace\n)R}" + text("lr") + "K\x01sb", "cargparse\nNamespace\n)\x81}" + text("lr") + "K\x01sb",
        "cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(" + text("f8") + "K\x00K\x01tRC\x02zztR"s,
        "ctorch\nfloat16\n"s, "cpathlib\nPosixPath\n(" + text("/tmp") + "tR", "\x8f(K\x01\x90"s,
        "\x8a\x10" + std::string(16, '\1'), "cposix\nsystem\n(" + text("touch executed") + "tR",
        "(cargparse\nNamespace\no"s, "(iargparse\nNamespace\n"s}) {
    const auto path = pickled("}" + text("args") + object + "s" + text("model") + weights + "s.", std::string(4, '\0'));
    EXPECT_EQ(loaded(path).size(), 1u) << object;
  }
  EXPECT_FALSE(fs::exists("executed"));
}

TEST(TorchFile, NamesADtypeThatIsNotSupported) {
  const std::string complex = "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") +
                              "ctorch\nComplexFloatStorage\n" + text("0") + text("cpu") + number(1) + "tQ" + number(0) +
                              tuple({1}) + tuple({1}) + "\x89)tR";
  const auto [load, throws] = refuses_torch_file(pickled("}" + text("a") + complex + "s.", std::string(8, '\0')),
                                                 "tensor a is of torch.ComplexFloatStorage, which is not supported");
  EXPECT_THAT(load, throws);
}

TEST(TorchFile, LeavesOutExtraState) { EXPECT_EQ(loaded(kGoldens + "extra.pt").size(), 1u); }

TEST(TorchFile, RefusesAnEntryThatWouldRunCodeByItsName) {
  const auto [load, throws] =
      refuses_torch_file(kGoldens + "shell.pt", "b is not a tensor, but posix.system, which was not executed");
  EXPECT_THAT(load, throws);
  EXPECT_FALSE(fs::exists("executed"));
}

TEST(TorchFile, SaysHowToConvertFilesOfOldTorch) {
  const auto [load, throws] =
      refuses_torch_file(kGoldens + "legacy.pt", "format of torch before 1.6; convert it with python3");
  EXPECT_THAT(load, throws);
  std::string tar(512, '\0');
  tar.replace(257, 5, "ustar");
  write_atomically(torch_scratch("old.pth"), tar);
  const auto [load_tar, throws_too] = refuses_torch_file(torch_scratch("old.pth"), "format of torch before 1.6");
  EXPECT_THAT(load_tar, throws_too);
}

// Wherever the file is cut off or a byte is changed, either an error names the file, or the tensors are read as before.
TEST(TorchFile, RefusesTruncatedAndDamagedFiles) {
  const std::string whole = read_file(kGoldens + "nested.pt"), path = torch_scratch("damaged.pt");
  const auto good = loaded(kGoldens + "nested.pt");
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 7) {
    write_atomically(path, std::string_view(whole).substr(0, bytes));
    EXPECT_THAT([&] { loaded(path); }, ThrowsMessage<DataError>(StartsWith(path))) << bytes;
  }
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); at += 3) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    write_atomically(path, changed);
    try {
      expect_equal(loaded(path), good);
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), StartsWith(path));
      ++refused;
    }
  }
  EXPECT_GT(refused, 50);
}

// Each of these pickles does harm, or crashes a program that trusts it.
TEST(TorchFile, DoesNotTrustPickles) {
  for (const auto& [body, why] :
       std::map<std::string, std::string>{{"cbuiltins\neval\n(X\x03\0\0\0"
                                           "1+1tR."s,
                                           "holds builtins.eval, which was not executed"},
                                          {"ctorch._utils\n_rebuild_tensor_v2\n)R.", "argument 0 is missing"},
                                          {"ctorch\nFloatStorage\n)R.", "holds torch.FloatStorage"},
                                          {"R.", "nothing is on the stack"},
                                          {"(.", "a mark lies where"},
                                          {"u.", "there is no mark"},
                                          {"h\x05.", "the memo has no entry 5"},
                                          {"}", "the pickle ends too early"},
                                          {"X\xff\xff\xff\xff.", "the pickle ends too early"},
                                          {"}K\x01K\x02s.", "a key that is not a string"},
                                          {"}X\x01\0\0\0"
                                           "aK\x02s."s,
                                           "a is not a tensor, but a number"},
                                          {"K\x01.", "not a dictionary of tensors"},
                                          {"(i", "the pickle ends within a name"}}) {
    const auto path = pickled(body);
    const auto [load, throws] = refuses_torch_file(path, why);
    EXPECT_THAT(load, throws) << why;
  }
}

// Opcodes that copy earlier values could otherwise double a text, or multiply lists, with a few bytes each.
TEST(TorchFile, RefusesPicklesThatCopyTheirValuesWithoutBound) {
  std::string doubled(
      "\x80\x04\x8c\x01"
      "aq\x00",
      7),
      pairs("\x80\x02(K\x01K\x02\x86q\x00", 10);
  for (int i = 0; i < 60; ++i) doubled += std::string("0h\x00h\x00\x93q\x00", 8);
  EXPECT_THROW(unpickle_state_dict("a.pt", doubled + "."), DataError);
  for (int i = 0; i < 1000; ++i) pairs += std::string("h\x00", 2);
  pairs += std::string(
      "l\x85q\x01"
      "ccollections\nOrderedDict\nq\x02",
      31);
  for (int i = 0; i < 1000; ++i) pairs += "h\x02h\x01R";
  EXPECT_THAT([&] { unpickle_state_dict("a.pt", pairs + "."); },
              ::testing::ThrowsMessage<DataError>(::testing::HasSubstr("copies its values so often")));
}

TEST(TorchFile, RefusesATensorOutsideOfItsStorage) {
  const auto [load, throws] = refuses_torch_file(pickled("}" + text("a") + view(4, 2, {3}, {1}) + "s."),
                                                 "tensor a lies outside of its storage of 4 elements");
  EXPECT_THAT(load, throws);
}

// Elements that are repeated without end would take all memory, and the product of the sizes may overflow.
TEST(TorchFile, RefusesATensorThatRepeatsItsStorage) {
  constexpr std::int64_t k2To61 = std::int64_t{1} << 61;
  const std::string repeats = " elements, which repeat those of a storage of 4 elements; save a contiguous copy";
  for (const auto& [shape, why] :
       std::map<Sizes, std::string>{{{2147483647}, "tensor a has 2147483647" + repeats},
                                    {{k2To61}, "tensor a has 2305843009213693952" + repeats},
                                    {{k2To61, 2, 2}, "tensor a has more elements than can be counted"},
                                    {{k2To61, 8}, "tensor a has more elements than can be counted"},
                                    {{k2To61, 8, 0}, "tensor a has more elements than can be counted"}}) {
    const Sizes strides(shape.size(), 0);
    const auto path = pickled("}" + text("a") + view(4, 0, shape, strides) + "s.", std::string(16, '\0'));
    const auto [load, throws] = refuses_torch_file(path, why);
    EXPECT_THAT(load, throws) << why;
  }
}

TEST(TorchFile, RefusesAStorageWithFewerElementsThanItsPickleSays) {
  constexpr std::int64_t k2To62 = std::int64_t{1} << 62;
  const auto path = pickled("}" + text("a") + view(k2To62, 0, {k2To62}, {1}) + "s.", std::string(16, '\0'));
  const auto [load, throws] =
      refuses_torch_file(path, "data/0 has 16 bytes, but tensor a is of 4611686018427387904 elements");
  EXPECT_THAT(load, throws);
}

// Tied weights are either one tensor under two names, which a pickle stores ('q') and recalls ('h'), or two tensors.
TEST(TorchFile, ReadsTensorsThatShareAStorageIntoMemoryOfTheirOwn) {
  const at::Tensor base = at::arange(6, at::kFloat).reshape({2, 3});
  const std::string bytes(static_cast<const char*>(base.const_data_ptr()), base.nbytes());
  auto all = loaded(pickled("}" + text("weight") + view(6, 0, {2, 3}, {3, 1}) + "q\x05s" +  //
                                text("same") + "h\x05s" +                                   //
                                text("tied") + view(6, 0, {2, 3}, {3, 1}) + "s" +           //
                                text("turned") + view(6, 0, {3, 2}, {1, 3}) + "s" +         //
                                text("row") + view(6, 3, {3}, {1}) + "s" +                  //
                                text("column") + view(6, 1, {2}, {3}) + "s" +               //
                                text("corner") + view(6, 5, {}, {}) + "s.",
                            bytes));
  const std::map<std::string, at::Tensor> wanted{{"weight", base},
                                                 {"same", base},
                                                 {"tied", base},
                                                 {"turned", base.t()},
                                                 {"row", base.select(0, 1)},
                                                 {"column", base.select(1, 1)},
                                                 {"corner", base.select(0, 1).select(0, 2)}};
  expect_equal(all, wanted);
  all.at("weight").fill_(7);
  all.erase("weight");
  auto others = wanted;
  others.erase("weight");
  expect_equal(all, others);
  for (const auto& [name, tensor] : all) EXPECT_TRUE(tensor.is_contiguous()) << name;
}

}  // namespace
}  // namespace phalanx
