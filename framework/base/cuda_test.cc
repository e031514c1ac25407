// SPDX-License-Identifier: Apache-2.0
#include "framework/base/cuda.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "framework/base/error.h"
#include "framework/base/log.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

const std::string kFolder = "framework/base/testing/";
const std::string kFakeCuda = kFolder + "libfake_cuda.so";
const std::string kOld = kFolder + "libfake_cuda_old.so";

TEST(Cuda, SaysThatThereIsNoDriver) {
  const Cuda cuda({.driver = "/nowhere/libcuda.so.1", .libtorch = kFakeCuda, .plugin = kFakeCuda});
  EXPECT_FALSE(cuda.loaded());
  EXPECT_THAT(cuda.missing(), AllOf(HasSubstr("there is no NVIDIA driver (/nowhere/libcuda.so.1: "),
                                    HasSubstr("use device: cpu"), Not(HasSubstr("\n"))));
}

TEST(Cuda, SaysThatLibTorchWasBuiltWithoutCuda) {
  const Cuda cuda({.driver = kFakeCuda, .libtorch = "/nowhere/libtorch_cuda.so", .plugin = kFakeCuda});
  EXPECT_THAT(cuda.missing(), AllOf(HasSubstr("this LibTorch was built without CUDA"),
                                    HasSubstr("/nowhere/libtorch_cuda.so: "), Not(HasSubstr("\n"))));
}

TEST(Cuda, SaysThatThereIsNoPlugin) {
  const Cuda cuda({.driver = kFakeCuda, .libtorch = kFakeCuda, .plugin = "/nowhere/libphalanx_cuda.so"});
  EXPECT_THAT(cuda.missing(), AllOf(HasSubstr("the plug-in libphalanx_cuda.so of this program is missing"),
                                    HasSubstr("--config=cuda"), Not(HasSubstr("\n"))));
}

TEST(Cuda, SaysThatTheDriverIsTooOldWithBothVersions) {
  const Cuda cuda({.driver = kOld, .libtorch = kFakeCuda, .plugin = kFakeCuda});
  EXPECT_EQ(cuda.missing(),
            "the NVIDIA driver is too old: it supports CUDA 12.4, but this LibTorch needs CUDA 13.0; update the "
            "driver; or use device: cpu");
}

TEST(Cuda, RefusesAPluginOfAnotherBuildBeforeItIsLoaded) {
  const Cuda cuda({.driver = kFakeCuda, .libtorch = kFakeCuda, .plugin = kFolder + "libfake_cuda_of_another_build.so"});
  EXPECT_THAT(cuda.missing(), AllOf(HasSubstr("the plug-in libphalanx_cuda.so was built for Phalanx 0.0.1, "),
                                    HasSubstr(", but this program is Phalanx "),
                                    HasSubstr("build it again; or use device: cpu"), Not(HasSubstr("\n"))));
}

TEST(Cuda, RefusesAPluginOfAnotherToolkitWithBothVersions) {
  const Cuda cuda(
      {.driver = kFakeCuda, .libtorch = kFakeCuda, .plugin = kFolder + "libfake_cuda_of_another_toolkit.so"});
  EXPECT_THAT(cuda.missing(), HasSubstr("was built with CUDA 12.4, but this LibTorch needs CUDA 13.0; build it again"));
}

TEST(Cuda, RefusesAnOlderNcclThanThePluginWasBuiltFor) {
  const Cuda cuda({.driver = kFakeCuda, .libtorch = kFakeCuda, .plugin = kFolder + "libfake_cuda_with_old_nccl.so"});
  EXPECT_THAT(cuda.missing(),
              HasSubstr("NCCL 2.22.5 was loaded, but the plug-in libphalanx_cuda.so needs NCCL 2.29.7"));
}

TEST(Cuda, CallsThePluginIfNothingIsMissing) {
  const Cuda cuda({.driver = kFakeCuda, .libtorch = kFakeCuda, .plugin = kFakeCuda});
  EXPECT_EQ(cuda.missing(), "");
  EXPECT_EQ(cuda.function<int()>("phalanx_cuda_answer")(), 42);
  EXPECT_EQ(cuda.devices(), 2);
}

// The plug-in has its own copy of the code that logs.
TEST(Cuda, WritesLinesOfThePluginIntoTheLogOfTheThread) {
  const Cuda cuda({.driver = kFakeCuda, .libtorch = kFakeCuda, .plugin = kFakeCuda});
  const ThreadLog log({.rank = 7});
  ::testing::internal::CaptureStderr();
  cuda.function<void(const char*)>("phalanx_cuda_say")("NCCL is late");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr(" rank 7 WARNING "), HasSubstr("fake_cuda_library.cc:"), HasSubstr(": NCCL is late\n")));
}

TEST(Cuda, RefusesAPluginOfOtherSources) {
  const Cuda cuda({.driver = kFakeCuda, .libtorch = kFakeCuda, .plugin = kFakeCuda});
  EXPECT_THAT([&] { cuda.function<void()>("phalanx_cuda_news"); },
              ThrowsMessage<ConfigError>(HasSubstr("has no phalanx_cuda_news, so it was built from other sources")));
}

TEST(Cuda, SaysThatThereIsNoDevice) {
  const Cuda cuda({.driver = kFakeCuda, .libtorch = kFakeCuda, .plugin = kOld});
  EXPECT_THAT([&] { cuda.devices(); },
              ThrowsMessage<ConfigError>(HasSubstr("there is no usable device (CUDA_ERROR_NO_DEVICE: ")));
}

TEST(Cuda, ThrowsWhatIsMissing) {
  const Cuda cuda({.driver = "/nowhere/libcuda.so.1", .libtorch = kFakeCuda, .plugin = kFakeCuda});
  EXPECT_THAT([&] { cuda.devices(); }, ThrowsMessage<ConfigError>(HasSubstr("cuda: there is no NVIDIA driver")));
}

TEST(Cuda, TakesPathsFromTheEnvironment) {
  ::setenv("PHALANX_CUDA_DRIVER", "/d", 1);
  ::setenv("PHALANX_CUDA_LIBTORCH", "/l", 1);
  ::setenv("PHALANX_CUDA_PLUGIN", "/p", 1);
  const auto paths = CudaPaths::found();
  for (const char* name : {"PHALANX_CUDA_DRIVER", "PHALANX_CUDA_LIBTORCH", "PHALANX_CUDA_PLUGIN"}) ::unsetenv(name);
  EXPECT_EQ(paths.driver + paths.libtorch + paths.plugin, "/d/l/p");
  EXPECT_THAT(CudaPaths::found().plugin, HasSubstr("/libphalanx_cuda.so"));
  EXPECT_EQ(CudaPaths::found().driver, "libcuda.so.1");
}

}  // namespace
}  // namespace phalanx
