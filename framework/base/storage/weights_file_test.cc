// SPDX-License-Identifier: Apache-2.0
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

using namespace std::string_literals;  // these strings may contain NUL

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

std::string scratch(const std::string& name) { return ::testing::TempDir() + "/" + name; }

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

TEST(WeightsFile, EveryFormatGivesBackWhatWasWritten) {
  for (const char* name : {"w.pt", "w.pth", "w.safetensors"}) {
    EXPECT_THAT(save_weights(scratch(name), some_weights()), ElementsAre(scratch(name)));
    expect_equal(load_weights(scratch(name)), some_weights());
  }
}

// torch.load() expects these names of records, and contents at these offsets.
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

TEST(WeightsFile, SplitsIntoPartsAndFindsThem) {
  const std::string folder = scratch("sharded");
  fs::remove_all(folder);
  fs::create_directory(folder);
  const auto written = save_weights(folder + "/model.safetensors", some_weights(), 30);
  EXPECT_EQ(written.back(), folder + "/model.safetensors.index.json");
  EXPECT_GT(written.size(), 3u);
  const WeightsFile file(folder);  // found by the names that are looked for in a folder
  EXPECT_EQ(file.files(), written.size() - 1);
  expect_equal(load_weights(written.back()), some_weights());
  fs::remove(written[1]);
  EXPECT_THAT([&] { const WeightsFile none(folder); }, ThrowsMessage<DataError>(HasSubstr("names model-00002-of-")));
}

TEST(WeightsFile, RefusesWhatIsNotAnIndex) {
  for (const auto& [text, why] : std::map<std::string, std::string>{
           {"{}", "is not an index of weights"},
           {"[", "is not an index of weights"},
           {R"({"weight_map": {"a": "../secret.safetensors"}})", "which is not a file of weights in the same folder"},
           {R"({"weight_map": {"a": 3}})", "is not an index of weights"}}) {
    const std::string path = scratch("bad.index.json");
    write_atomically(path, text);
    const auto [load, throws] = refuses(path, why);
    EXPECT_THAT(load, throws) << text;
  }
  save_weights(scratch("one.safetensors"), {{"a", at::full({1}, 1, at::kFloat)}});
  write_atomically(scratch("bad.index.json"), R"({"weight_map": {"b": "one.safetensors"}})");
  const auto [load, throws] = refuses(scratch("bad.index.json"), "says that b is in one.safetensors, but it is not");
  EXPECT_THAT(load, throws);
}

TEST(WeightsFile, RecognizesAPointerOfGitLfs) {
  for (const std::string name : {"pointer.safetensors", "pointer.bin"}) {
    const std::string path = scratch(name);
    write_atomically(path, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 548105171\n");
    EXPECT_THAT([&] { WeightsFile file(path); },
                ThrowsMessage<DataError>(HasSubstr(path + ": is a Git LFS pointer instead of the file")));
  }
}

TEST(WeightsFile, RefusesNamesWithAnUnknownEnding) {
  write_atomically(scratch("weights.txt"), "x");
  EXPECT_THAT([] { load_weights(scratch("weights.txt")); }, ThrowsMessage<DataError>(HasSubstr("its name is not")));
  EXPECT_THAT([] { load_weights(scratch("nowhere.pt")); }, ThrowsMessage<DataError>(HasSubstr("no such file")));
  EXPECT_THAT([] { save_weights(scratch("w.bin2"), {}); }, ThrowsMessage<ConfigError>(HasSubstr("name that ends")));
  EXPECT_THAT([] { save_weights(scratch("w.pt"), {}, 5); },
              ThrowsMessage<ConfigError>(HasSubstr("cannot be split into parts")));
}

}  // namespace
}  // namespace phalanx
