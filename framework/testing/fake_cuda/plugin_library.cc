// SPDX-License-Identifier: Apache-2.0
// Replaces the driver, libtorch_cuda.so and the plug-in of programs, so that tests load them as programs do.
#include "framework/base/cuda.h"
#include "framework/base/plugin_stamp.h"
#include "framework/testing/fake_cuda/plugin_table.h"

using phalanx::testing::PluginTable;

// Not among the declarations in braces, where a constant would not be exported, and the linker would drop it.
extern "C" [[gnu::section(PHALANX_PLUGIN_SECTION), gnu::used]] const char phalanx_plugin_stamp[] = PHALANX_PLUGIN_STAMP;

extern "C" {

const PluginTable* phalanx_fake_plugin_table = nullptr;

int cuDriverGetVersion(int* version) {
  phalanx::CudaVersions versions;
  phalanx_fake_plugin_table->versions(&versions);
  *version = versions.libtorch_cuda;
  return 0;
}

void phalanx_cuda_versions(phalanx::CudaVersions* versions) { phalanx_fake_plugin_table->versions(versions); }

int phalanx_cuda_device_count(const char** why) { return phalanx_fake_plugin_table->device_count(why); }

void phalanx_nccl_connect(const phalanx::nccl::ConnectRequest& request, std::shared_ptr<phalanx::Communicator>& made) {
  phalanx_fake_plugin_table->connect(request, made);
}

void phalanx_nccl_messages(const phalanx::nccl::MessagesRequest& request,
                           std::shared_ptr<phalanx::DeviceMessages>& made) {
  phalanx_fake_plugin_table->connect_messages(request, made);
}

void phalanx_cuda_make_graph(std::unique_ptr<phalanx::DeviceGraph>& made) {
  phalanx_fake_plugin_table->make_graph(made);
}

void phalanx_cuda_peer_memory(int device, std::shared_ptr<phalanx::PeerMemory>& made) {
  phalanx_fake_plugin_table->make_peer_memory(device, made);
}
}
