// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "framework/base/config/config.h"
#include "framework/base/testing/schema.h"

namespace phalanx::config {
namespace {

using config::testing::loaded;
using config::testing::problems_of;

struct Job {
  bool cuda_graph = false;
  testing::Launch launcher;
  template <class V>
  void visit(V& v) {
    v.renamed("capture", "cuda_graph");
    v("cuda_graph", cuda_graph, "replay the step as a graph");
    v.renamed("launch", "launcher");
    v("launcher", launcher, "how ranks are started");
  }
};

std::string warnings_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  ::testing::internal::CaptureStderr();
  loaded<Job>(text, overrides);
  return ::testing::internal::GetCapturedStderr();
}

TEST(RenamedKey, IsReadUnderItsFormerName) {
  EXPECT_TRUE(loaded<Job>("capture: true").cuda_graph);
  EXPECT_EQ(loaded<Job>("launch: {ranks: 3}").launcher.ranks, 3);
  EXPECT_TRUE(loaded<Job>("", {"capture=true"}).cuda_graph);
}

TEST(RenamedKey, WarnsWithThePlaceAndTheNewName) {
  EXPECT_NE(warnings_of("launch:\n  ranks: 3\n").find("t.yaml:1:1: launch: is now called launcher; use the new name"),
            std::string::npos);
  EXPECT_NE(warnings_of("", {"capture=true"}).find("--set capture=true: capture: is now called cuda_graph"),
            std::string::npos);
  EXPECT_EQ(warnings_of("cuda_graph: true"), "");
}

TEST(RenamedKey, IsCheckedLikeTheNewOne) {
  EXPECT_EQ(problems_of<Job>("capture: often"), "t.yaml:1:10: cuda_graph: expected true or false, got \"often\"");
}

TEST(RenamedKey, IsAnErrorNextToTheNewOne) {
  EXPECT_EQ(problems_of<Job>("cuda_graph: true\ncapture: true"),
            "t.yaml:2:1: capture: is the former name of cuda_graph, which is set too; leave it out");
}

TEST(RenamedKey, LetsAFlagOverrideTheFileUnderEitherName) {
  EXPECT_FALSE(loaded<Job>("cuda_graph: true", {"capture=false"}).cuda_graph);
  EXPECT_FALSE(loaded<Job>("capture: true", {"cuda_graph=false"}).cuda_graph);
}

TEST(RenamedKey, IsNotWritten) {
  Job job;
  EXPECT_EQ(dump(job).find("capture"), std::string::npos);
}

}  // namespace
}  // namespace phalanx::config
