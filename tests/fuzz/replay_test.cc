// SPDX-License-Identifier: Apache-2.0
// Every input in testdata/, and a few changes of each that are the same in every run.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/target.h"

namespace phalanx::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr int kChanges = 20;  // per input

std::vector<fs::path> inputs_of(const Target& target) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator("tests/fuzz/testdata/" + target.name)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Corpus : public ::testing::TestWithParam<Target> {};

// Names that begin with "good" are of well-formed inputs; all others must be refused.
TEST_P(Corpus, IsTakenOrRefusedAsItsNamesSay) {
  int good = 0, bad = 0;
  for (const auto& path : inputs_of(GetParam())) {
    SCOPED_TRACE(path.string());
    const bool is_good = path.filename().string().starts_with("good");
    EXPECT_EQ(accepts(GetParam(), content_of(path)), is_good);
    ++(is_good ? good : bad);
  }
  EXPECT_GT(good, 0);
  EXPECT_GT(bad, 0);
}

TEST_P(Corpus, NeverCausesAnythingButAnErrorWhenItIsChanged) {
  Random random(1);
  const MutateBytes mutate = [&](std::string text) { return mutate_bytes(std::move(text), random); };
  for (const auto& path : inputs_of(GetParam())) {
    SCOPED_TRACE(path.string());
    const std::string input = content_of(path);
    for (int i = 0; i < kChanges; ++i) {
      const bool structured = GetParam().mutate != nullptr && i % 4 != 0;
      const std::string changed = structured ? GetParam().mutate(input, mutate, random) : mutate(input);
      EXPECT_NO_THROW(accepts(GetParam(), changed));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Corpus, ::testing::ValuesIn(targets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace phalanx::fuzz
