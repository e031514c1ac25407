// SPDX-License-Identifier: Apache-2.0
// LibTorch exports its own Gloo, which is another version. Ours must be bound first, or every call crashes.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/transport/tcp/device.h>
#include <gtest/gtest.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "third_party/gloo/full_mesh.h"

namespace {

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> names;
  const auto append = [](dl_phdr_info* info, std::size_t, void* names) {
    static_cast<std::vector<std::string>*>(names)->emplace_back(info->dlpi_name);
    return 0;
  };
  dl_iterate_phdr(append, &names);
  return names;
}

TEST(Gloo, IsLinkedBeforeLibTorch) {
  const auto libraries = loaded_libraries();
  const auto position = [&](const char* name) {
    return std::find_if(libraries.begin(), libraries.end(),
                        [&](const std::string& library) { return library.find(name) != std::string::npos; });
  };
  ASSERT_NE(position("libgloo"), libraries.end());
  ASSERT_NE(position("libtorch_cpu"), libraries.end());
  EXPECT_LT(position("libgloo"), position("libtorch_cpu"));
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
