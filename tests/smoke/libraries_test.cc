// SPDX-License-Identifier: Apache-2.0
// Tests that the headers and the binary of each library are found and match.

#include <benchmark/benchmark.h>
#include <gflags/gflags.h>
#include <glog/logging.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>
#include <zlib.h>

#include <nlohmann/json.hpp>
#include <string>

DEFINE_int32(answer, 42, "a flag");

namespace {

TEST(Libraries, Gflags) {
  EXPECT_EQ(FLAGS_answer, 42);
  EXPECT_FALSE(gflags::SetCommandLineOption("answer", "7").empty());
  EXPECT_EQ(FLAGS_answer, 7);
}

TEST(Libraries, Glog) {
  EXPECT_FALSE(google::IsGoogleLoggingInitialized());
  VLOG(1) << "silent";
}

TEST(Libraries, YamlCpp) { EXPECT_EQ(YAML::Load("{lr: 0.05}")["lr"].as<double>(), 0.05); }

TEST(Libraries, NlohmannJson) { EXPECT_EQ(nlohmann::json::parse(R"({"step": 3})")["step"], 3); }

TEST(Libraries, Zlib) { EXPECT_STREQ(zlibVersion(), ZLIB_VERSION); }

TEST(Libraries, Benchmark) { EXPECT_GE(benchmark::CPUInfo::Get().num_cpus, 1); }

}  // namespace
