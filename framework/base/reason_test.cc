// SPDX-License-Identifier: Apache-2.0
#include "framework/base/reason.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace phalanx {
namespace {

std::string told(const std::string& what) { return reason(std::runtime_error(what)); }

TEST(Reason, IsWhatAnExceptionSays) {
  EXPECT_EQ(told("disk is full"), "disk is full");
  EXPECT_EQ(told("a.yaml:3: one\na.yaml:4: two"), "a.yaml:3: one\na.yaml:4: two");
}

TEST(Reason, OfLibTorchHasNoStackTrace) {
  EXPECT_EQ(told("sizes do not match\nException raised from f at a.cpp:1 (most recent call first):\nframe #0: f"),
            "sizes do not match");
  EXPECT_EQ(told("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried "
                 "to allocate 31 bytes. Error code 12\nframe #0: f\nframe #1: g"),
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 31 bytes. Error code 12");
}

TEST(Reason, HasNoPlacesInLibraries) {
  EXPECT_EQ(told("connecting: [enforce fail at ./gloo/transport/tcp/device.cc:84] rv == 0. Name does not resolve"),
            "connecting: Name does not resolve");
  EXPECT_EQ(told("[enforce fail at a.cc:1] a == b"), "[enforce fail at a.cc:1] a == b") << "there is nothing else";
  EXPECT_EQ(told("manifest.json: [json.exception.type_error.302] type must be string, but is number"),
            "manifest.json: type must be string, but is number");
}

TEST(Reason, OfTooLittleDeviceMemoryHasSizesAndAdvice) {
  EXPECT_EQ(
      told("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.20 "
           "GiB is free. Process 7 has 3.00 GiB memory in use.\nException raised from malloc at a.cpp:1"),
      "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.20 GiB is "
      "free. Use smaller batches, train.accumulate or train.checkpoint_activations, or divide the model among more "
      "devices.");
}

TEST(Reason, OfTooLittleMemoryIsInWords) { EXPECT_EQ(reason(std::bad_alloc()), "there is not enough memory"); }

}  // namespace
}  // namespace phalanx
