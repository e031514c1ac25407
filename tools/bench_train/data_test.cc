// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/data.h"

#include <ATen/ops/equal.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "framework/base/error.h"
#include "launch/temporary_folder.h"

namespace phalanx::bench_train {
namespace {

Workload few(const std::string& name, std::int64_t samples) {
  Workload workload = find_workload(name);
  workload.samples = samples;
  return workload;
}

Batch gather(const Dataset& data, const std::vector<std::int64_t>& indices) {
  Batch batch;
  data.gather(indices, 0, batch);
  return batch;
}

TEST(Data, PicturesAreTheSameEveryTime) {
  const TemporaryFolder one, other;
  const auto workload = few("resnet18", 12);
  const auto here = map_samples(draw_samples(workload, one.path()));
  const auto there = map_samples(draw_samples(workload, other.path()));
  ASSERT_EQ(12, here->size());
  const auto batch = gather(*here, {11, 3});
  EXPECT_EQ((std::vector<std::int64_t>{2, 3, 32, 32}), batch.inputs[0].sizes().vec());
  EXPECT_TRUE(at::equal(batch.inputs[0], gather(*there, {11, 3}).inputs[0]));
  EXPECT_TRUE(at::equal(batch.targets[0], gather(*there, {11, 3}).targets[0]));
  EXPECT_FALSE(at::equal(batch.inputs[0][0], batch.inputs[0][1]));
  EXPECT_LT(batch.targets[0].max().item<std::int64_t>(), 10);
}

TEST(Data, TargetsOfTextAreTheNextCharacters) {
  const TemporaryFolder folder;
  const auto text = map_samples(draw_samples(few("char_lm", 4), folder.path()));
  const auto batch = gather(*text, {0, 1, 2, 3});
  EXPECT_EQ(at::kLong, batch.inputs[0].scalar_type());
  EXPECT_TRUE(at::equal(batch.inputs[0].narrow(1, 1, 63), batch.targets[0].narrow(1, 0, 63)));
}

TEST(Data, ADatasetIsExportedUnchanged) {
  const TemporaryFolder first, second;
  const auto drawn = map_samples(draw_samples(few("lenet", 8), first.path()));
  const auto files = export_samples(*drawn, few("lenet", 6), second.path());
  EXPECT_EQ(6, files.samples);
  const auto exported = map_samples(files);
  EXPECT_TRUE(at::equal(gather(*drawn, {5}).inputs[0], gather(*exported, {5}).inputs[0]));
  EXPECT_EQ(10, exported->spec().targets.at(0).classes);
}

TEST(Data, AFileOfAnotherLengthIsRefused) {
  const TemporaryFolder folder;
  auto files = draw_samples(few("lenet", 8), folder.path());
  std::filesystem::resize_file(files.targets, 60);
  EXPECT_THROW(map_samples(files), DataError);
  EXPECT_THROW(gather(*map_samples(draw_samples(few("lenet", 8), folder.path())), {8}), c10::IndexError);
}

}  // namespace
}  // namespace phalanx::bench_train
