// SPDX-License-Identifier: Apache-2.0
// A program with flags, a log, YAML and functions of OpenSSL's of its own, and with a Gloo that does not work. The
// library must use none of them.
#include <ATen/ops/full.h>
#include <gflags/gflags.h>
#include <glog/logging.h>
#include <phalanx/launch.h>
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
PHALANX_UNUSABLE(EVP_Digest)
PHALANX_UNUSABLE(EVP_sha256)
PHALANX_UNUSABLE(CRYPTO_memcmp)
PHALANX_UNUSABLE(_ZN4gloo9allreduceERKNS_16AllreduceOptionsE)  // gloo::allreduce
PHALANX_UNUSABLE(_ZN4gloo7barrierERNS_14BarrierOptionsE)       // gloo::barrier

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  google::InitGoogleLogging(argv[0]);
  ::setenv("PHALANX_JOB_SECRET", "a secret, which needs OpenSSL", 1);
  const std::string text = YAML::Dump(YAML::Load("{dtype: float, size: [2, 3]}"));
  phalanx::launch(2,
                  [](phalanx::World& world) {
                    auto values = at::full({1000}, world.rank() + 1.0);
                    world.communicator().all_reduce(values, phalanx::Reduction::kSum).wait();
                    std::printf("rank %d: %.0f\n", world.rank(), values[999].item<double>());
                  },
                  {.backend = FLAGS_backend});
  std::printf("%s\n", text.c_str());
}
