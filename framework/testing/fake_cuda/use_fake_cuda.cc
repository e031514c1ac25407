// SPDX-License-Identifier: Apache-2.0
// Makes the device `cuda` of the test use the fake devices, the fake CUDA runtime and the fake NCCL, unless
// PHALANX_TEST_DEVICE names a real device.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "framework/backends/nccl/plugin.h"
#include "framework/base/cuda.h"
#include "framework/base/environment.h"
#include "framework/testing/fake_cuda/plugin_table.h"
#include "framework/testing/fake_device/graph.h"

extern "C" {
void phalanx_cuda_versions(phalanx::CudaVersions* versions);
int phalanx_cuda_device_count(const char** why);
void phalanx_nccl_connect(const phalanx::nccl::ConnectRequest& request, phalanx::CommunicatorPtr& made);
void phalanx_nccl_messages(const phalanx::nccl::MessagesRequest& request,
                           std::shared_ptr<phalanx::DeviceMessages>& made);
void phalanx_cuda_make_graph(std::unique_ptr<phalanx::DeviceGraph>& made);
void phalanx_cuda_peer_memory(int device, std::shared_ptr<phalanx::PeerMemory>& made);
}

namespace phalanx {

std::unique_ptr<DeviceGraph> nccl::make_graph() { return make_watched(std::make_unique<testing::FakeGraph>()); }

namespace testing {
namespace {

constexpr const char* kLibrary = "framework/testing/fake_cuda/libfake_cuda_plugin.so";

bool use_fake_cuda() {
  if (environment("PHALANX_TEST_DEVICE")) return false;
  static const PluginTable table{.versions = &phalanx_cuda_versions,
                                 .device_count = &phalanx_cuda_device_count,
                                 .connect = &phalanx_nccl_connect,
                                 .connect_messages = &phalanx_nccl_messages,
                                 .make_graph = &phalanx_cuda_make_graph,
                                 .make_peer_memory = &phalanx_cuda_peer_memory};
  const std::string path = std::filesystem::absolute(kLibrary).string();
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    std::abort();
  }
  *static_cast<const PluginTable**>(::dlsym(library, "phalanx_fake_plugin_table")) = &table;
  for (const char* name : {"PHALANX_CUDA_DRIVER", "PHALANX_CUDA_LIBTORCH", "PHALANX_CUDA_PLUGIN"}) {
    ::setenv(name, path.c_str(), 1);
  }
  return true;
}

const bool used = use_fake_cuda();

}  // namespace
}  // namespace testing
}  // namespace phalanx
