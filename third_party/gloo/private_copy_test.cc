// SPDX-License-Identifier: Apache-2.0
// LibTorch exports its own Gloo, which is another version. Calls of ours must not be bound to it, or they crash.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <dlfcn.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/common/error.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/transport/tcp/device.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>

#include "third_party/gloo/full_mesh.h"

namespace {

// Returns the file that has a function.
std::string file_of(const void* function) {
  Dl_info info{};
  return ::dladdr(function, &info) != 0 ? info.dli_fname : "";
}

TEST(Gloo, IsNotTheOneOfLibTorch) {
  void (*const barrier)(gloo::BarrierOptions&) = &gloo::barrier;
  EXPECT_NE(file_of(reinterpret_cast<const void*>(barrier)).find("libGloo.so"), std::string::npos);
  const void* theirs = ::dlsym(RTLD_DEFAULT, "_ZN4gloo7barrierERNS_14BarrierOptionsE");
  ASSERT_NE(theirs, nullptr) << "this LibTorch exports no Gloo: a copy with another namespace is not needed any more";
  EXPECT_NE(file_of(theirs).find("libtorch_cpu"), std::string::npos);
}

// The type that the library throws must be the one that our code catches, by its new name.
TEST(Gloo, ThrowsTypesThatCallersCatch) {
  gloo::rendezvous::HashStore store;
  EXPECT_THROW(store.wait({"missing"}, std::chrono::milliseconds(1)), gloo::IoException);
}

void all_reduce(int rank, const std::shared_ptr<gloo::rendezvous::HashStore>& store, at::Tensor values) {
  auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, 2);
  connect_full_mesh(*context, store, device);
  gloo::AllreduceOptions options(context);
  options.setOutput(values.data_ptr<float>(), static_cast<std::size_t>(values.numel()));
  options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
  gloo::allreduce(options);
}

TEST(Gloo, AllReducesTensors) {
  const auto store = std::make_shared<gloo::rendezvous::HashStore>();
  const at::Tensor first = at::full({1000}, 1.0F);
  const at::Tensor second = at::full({1000}, 2.0F);
  std::thread peer([&] { all_reduce(1, store, second); });
  all_reduce(0, store, first);
  peer.join();
  EXPECT_TRUE(first.equal(at::full({1000}, 3.0F)));
  EXPECT_TRUE(second.equal(first));
}

}  // namespace
