// SPDX-License-Identifier: Apache-2.0
// A rank that has its own flags, log and YAML, and functions of OpenSSL and Gloo that do not work. The library must use
// none of them. A job with a secret and backend gloo would.
#include <ATen/ops/full.h>
#include <gflags/gflags.h>
#include <glog/logging.h>
#include <phalanx/world.h>
#include <yaml-cpp/yaml.h>

#include <cstdio>
#include <cstdlib>
#include <string>

DEFINE_string(backend, "gloo", "a flag");

#define PHALANX_UNUSABLE(function)                              \
  extern "C" void function() {                                  \
    std::fputs("called the program's " #function "\n", stderr); \
    std::abort();                                               \
  }

PHALANX_UNUSABLE(HMAC)
PHALANX_UNUSABLE(EVP_sha256)
PHALANX_UNUSABLE(CRYPTO_memcmp)
PHALANX_UNUSABLE(_ZN4gloo7barrierERNS_14BarrierOptionsE)             // gloo::barrier
PHALANX_UNUSABLE(_ZN4gloo9allreduceERKNS_16AllreduceOptionsE)        // gloo::allreduce
PHALANX_UNUSABLE(_ZN4gloo9transport3tcp12CreateDeviceERKNS1_4attrE)  // gloo::transport::tcp::CreateDevice
PHALANX_UNUSABLE(_ZN4gloo10rendezvous5StoreD2Ev)                     // gloo::rendezvous::Store::~Store

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  google::InitGoogleLogging(argv[0]);
  const std::string text = YAML::Dump(YAML::Load("{dtype: float, size: [2, 3]}"));
  const auto world = phalanx::init({.backend = FLAGS_backend});
  auto values = at::full({1000}, world.rank() + 1.0);
  world.communicator().all_reduce(values, phalanx::Reduction::kSum).wait();
  std::printf("rank %d: %.0f, %s\n", world.rank(), values[999].item<double>(), text.c_str());
}
