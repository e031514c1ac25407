#include "framework/base/storage/weights_file.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <string>

#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

using namespace std::string_literals;  // which may hold NUL

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

const std::string kGoldens = "framework/base/storage/goldens/";

std::string scratch(const std::string& name) { return ::testing::TempDir() + "/" + name; }

std::map<std::string, at::Tensor> loaded(const std::string& path) {
  const NamedTensors tensors = load_weights(path);
  return {tensors.begin(), tensors.end()};
}

NamedTensors some_weights() {
  return {{"z.weight", at::arange(6, at::kFloat).reshape({2, 3}).t()},
          {"a", at::full({3}, 0.3, at::kDouble)},
          {"b", at::full({2}, 0.3, at::kBFloat16)},
          {"half", at::full({5}, 0.3, at::kHalf)},
          {"n", at::full({}, 1 << 30, at::kLong)},
          {"flags", at::full({2}, true, at::kBool)},
          {"none", at::full({0, 4}, 1, at::kFloat)}};
}

void expect_equal(const NamedTensors& read, const NamedTensors& written) {
  ASSERT_EQ(read.size(), written.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].first, written[i].first);
    EXPECT_EQ(read[i].second.scalar_type(), written[i].second.scalar_type());
    EXPECT_TRUE(at::equal(read[i].second, written[i].second)) << read[i].first;
  }
}

auto refuses(const std::string& path, const std::string& why) {
  return std::pair([path] { load_weights(path); }, ThrowsMessage<DataError>(AllOf(StartsWith(path), HasSubstr(why))));
}

// Elements k / 4, as make_torch_files.py says.
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

TEST(TorchFile, LeavesOutExtraState) { EXPECT_EQ(loaded(kGoldens + "extra.pt").size(), 1u); }

TEST(TorchFile, RefusesAPickleThatWantsToRunCodeByItsName) {
  const auto [load, throws] = refuses(kGoldens + "shell.pt", "wants posix.system, which would run code");
  EXPECT_THAT(load, throws);
  EXPECT_FALSE(fs::exists("executed"));
}

TEST(TorchFile, SaysHowToConvertWhatOldTorchWrote) {
  const auto [load, throws] = refuses(kGoldens + "legacy.pt", "format of torch before 1.6; convert it with python3");
  EXPECT_THAT(load, throws);
  std::string tar(512, '\0');
  tar.replace(257, 5, "ustar");
  write_atomically(scratch("old.pth"), tar);
  const auto [load_tar, throws_too] = refuses(scratch("old.pth"), "format of torch before 1.6");
  EXPECT_THAT(load_tar, throws_too);
}

// Wherever it was cut off, or a byte was changed, an error follows that names the file, or what is read is as before.
TEST(TorchFile, RefusesWhatWasCutOffOrDamaged) {
  const std::string whole = read_file(kGoldens + "nested.pt"), path = scratch("damaged.pt");
  const NamedTensors good = load_weights(kGoldens + "nested.pt");
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 7) {
    write_atomically(path, std::string_view(whole).substr(0, bytes));
    EXPECT_THAT([&] { load_weights(path); }, ThrowsMessage<DataError>(StartsWith(path))) << bytes;
  }
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); at += 3) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    write_atomically(path, changed);
    try {
      expect_equal(load_weights(path), good);
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), StartsWith(path));
      ++refused;
    }
  }
  EXPECT_GT(refused, 50);
}

std::string pickled(const std::string& body) {
  StoredZipWriter zip("x");
  zip.add("archive/data.pkl", "\x80\x02" + body);
  const std::string path = scratch("pickle.pt");
  write_atomically(path, zip.finish());
  return path;
}

// Each of these is a pickle that does harm, or ends a program that believes it.
TEST(TorchFile, BelievesNoPickle) {
  for (const auto& [body, why] :
       std::map<std::string, std::string>{{"cbuiltins\neval\n(X\x03\0\0\0"
                                           "1+1tR."s,
                                           "wants builtins.eval"},
                                          {"ctorch._utils\n_rebuild_tensor_v2\n)R.", "argument 0 is missing"},
                                          {"ctorch\nFloatStorage\n)R.", "which is no function"},
                                          {"R.", "nothing is on the stack"},
                                          {"(.", "a mark lies where"},
                                          {"u.", "there is no mark"},
                                          {"h\x05.", "nothing was remembered as 5"},
                                          {"}", "the pickle ends too early"},
                                          {"X\xff\xff\xff\xff.", "the pickle ends too early"},
                                          {"}K\x01K\x02s.", "a key that is no text"},
                                          {"}X\x01\0\0\0"
                                           "aK\x02s."s,
                                           "a is no tensor"},
                                          {"K\x01.", "no dictionary of tensors"},
                                          {"(i", "wants to make an object"}}) {
    const auto path = pickled(body);
    const auto [load, throws] = refuses(path, why);
    EXPECT_THAT(load, throws) << why;
  }
}

TEST(TorchFile, RefusesATensorOutsideOfItsStorage) {
  const std::string body =
      "}X\x01\0\0\0a"
      "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0"
      "0X\x03\0\0\0cpuK\x04tQK\x02K\x03\x85K\x01\x85\x89)tRs."s;
  const auto [load, throws] = refuses(pickled(body), "lies outside of its storage of 4 elements");
  EXPECT_THAT(load, throws);
}

// Elements that are repeated without end would take all memory.
TEST(TorchFile, RefusesATensorThatRepeatsItsStorage) {
  const std::string body =
      "}X\x01\0\0\0a"
      "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0"
      "0X\x03\0\0\0cpuK\x04tQK\x00J\xff\xff\xff\x7f\x85K\x00\x85\x89)tRs."s;
  const auto [load, throws] = refuses(pickled(body), "a tensor of 2147483647 elements repeats those of a storage of 4");
  EXPECT_THAT(load, throws);
}

TEST(WeightsFile, EveryFormatGivesBackWhatWasWritten) {
  for (const char* name : {"w.pt", "w.pth", "w.safetensors"}) {
    EXPECT_THAT(save_weights(scratch(name), some_weights()), ElementsAre(scratch(name)));
    expect_equal(load_weights(scratch(name)), some_weights());
  }
}

// As torch.load() reads it: names of records, and where their contents begin.
TEST(WeightsFile, WritesAnArchiveOfTorch) {
  save_weights(scratch("w.pt"), {{"a", at::full({2}, 1, at::kFloat)}});
  const StoredZip zip(scratch("w.pt"));
  std::vector<std::string> names;
  for (const auto& entry : zip.entries()) names.push_back(entry.name);
  EXPECT_THAT(names, ElementsAre("archive/data.pkl", "archive/byteorder", "archive/data/0", "archive/version"));
  EXPECT_EQ(zip.read(*zip.find("archive/version")), "3\n");
  EXPECT_EQ(zip.read(*zip.find("archive/data/0")), "\0\0\x80\x3f\0\0\x80\x3f"s);
  const std::string pickle = zip.read(*zip.find("archive/data.pkl"));
  EXPECT_THAT(pickle, StartsWith("\x80\x02"
                                 "ccollections\nOrderedDict\n)R(X\x01\0\0\0"
                                 "a"s));
  EXPECT_THAT(pickle, HasSubstr("ctorch._utils\n_rebuild_tensor_v2\n"));
}

TEST(WeightsFile, DividesAndFindsTheParts) {
  const std::string folder = scratch("sharded");
  fs::remove_all(folder);
  fs::create_directory(folder);
  const auto written = save_weights(folder + "/model.safetensors", some_weights(), 30);
  EXPECT_EQ(written.back(), folder + "/model.safetensors.index.json");
  EXPECT_GT(written.size(), 3u);
  const WeightsFile file(folder);  // by the names that are looked for in a folder
  EXPECT_EQ(file.files(), written.size() - 1);
  expect_equal(load_weights(written.back()), some_weights());
  fs::remove(written[1]);
  EXPECT_THAT([&] { const WeightsFile none(folder); }, ThrowsMessage<DataError>(HasSubstr("names model-00002-of-")));
}

TEST(WeightsFile, RefusesAnIndexThatIsNone) {
  for (const auto& [text, why] : std::map<std::string, std::string>{
           {"{}", "is no index of weights"},
           {"[", "is no index of weights"},
           {R"({"weight_map": {"a": "../secret.safetensors"}})", "which is no file of weights next to it"},
           {R"({"weight_map": {"a": 3}})", "is no index of weights"}}) {
    const std::string path = scratch("bad.index.json");
    write_atomically(path, text);
    const auto [load, throws] = refuses(path, why);
    EXPECT_THAT(load, throws) << text;
  }
  save_weights(scratch("one.safetensors"), {{"a", at::full({1}, 1, at::kFloat)}});
  write_atomically(scratch("bad.index.json"), R"({"weight_map": {"b": "one.safetensors"}})");
  const auto [load, throws] = refuses(scratch("bad.index.json"), "says that b is in one.safetensors, where it is not");
  EXPECT_THAT(load, throws);
}

TEST(WeightsFile, RefusesNamesThatSayNothing) {
  write_atomically(scratch("weights.txt"), "x");
  EXPECT_THAT([] { load_weights(scratch("weights.txt")); }, ThrowsMessage<DataError>(HasSubstr("by its name")));
  EXPECT_THAT([] { load_weights(scratch("nowhere.pt")); }, ThrowsMessage<DataError>(HasSubstr("no such file")));
  EXPECT_THAT([] { save_weights(scratch("w.bin2"), {}); }, ThrowsMessage<ConfigError>(HasSubstr("end the name")));
  EXPECT_THAT([] { save_weights(scratch("w.pt"), {}, 5); }, ThrowsMessage<ConfigError>(HasSubstr("is not divided")));
}

}  // namespace
}  // namespace phalanx
