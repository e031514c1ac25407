// SPDX-License-Identifier: Apache-2.0
// Replaces the driver, libtorch_cuda.so and the plug-in of programs, so that tests load them as programs do.
#include "framework/testing/fake_cuda/plugin_table.h"

using phalanx::testing::PluginTable;

extern "C" {

const PluginTable* phalanx_fake_plugin_table = nullptr;

int cuDriverGetVersion(int* version) {
  *version = phalanx_fake_plugin_table->runtime_version();
  return 0;
}

int phalanx_cuda_runtime_version() { return phalanx_fake_plugin_table->runtime_version(); }

int phalanx_cuda_device_count(const char** why) { return phalanx_fake_plugin_table->device_count(why); }

void phalanx_nccl_connect(const phalanx::nccl::ConnectRequest& request, std::shared_ptr<phalanx::Communicator>& made) {
  phalanx_fake_plugin_table->connect(request, made);
}

void phalanx_cuda_register_graphs() { phalanx_fake_plugin_table->register_graphs(); }

void phalanx_cuda_peer_memory(int device, std::shared_ptr<phalanx::PeerMemory>& made) {
  phalanx_fake_plugin_table->make_peer_memory(device, made);
}
}
