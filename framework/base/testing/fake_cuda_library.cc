// SPDX-License-Identifier: Apache-2.0
// Replaces the NVIDIA driver, libtorch_cuda.so and our plug-in, so that tests need none of them. Defines set the
// versions and the number of devices that it reports.
#include "framework/base/cuda.h"
#include "framework/base/log.h"
#include "framework/base/plugin_stamp.h"

#ifndef FAKE_TOOLKIT
#define FAKE_TOOLKIT 13000
#endif
#ifndef FAKE_NCCL
#define FAKE_NCCL 22907
#endif
#ifdef FAKE_OTHER_BUILD
#define FAKE_STAMP "Phalanx 0.0.1, LibTorch 1.0.0, compiler 1"
#else
#define FAKE_STAMP PHALANX_PLUGIN_STAMP
#endif

// Not among the declarations in braces, where a constant would not be exported, and the linker would drop it.
extern "C" [[gnu::section(PHALANX_PLUGIN_SECTION), gnu::used]] const char phalanx_plugin_stamp[] = FAKE_STAMP;

extern "C" {

int cuDriverGetVersion(int* version) {
  *version = FAKE_DRIVER;
  return 0;
}

void phalanx_cuda_versions(phalanx::CudaVersions* versions) {
  *versions = {.cuda = FAKE_TOOLKIT, .nccl = 22907, .libtorch_cuda = 13000, .running_nccl = FAKE_NCCL};
}

int phalanx_cuda_device_count(const char** why) {
  *why = "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected";
  return FAKE_DEVICES;
}

int phalanx_cuda_answer() { return 42; }

static phalanx::TakeLogLine* take_line = nullptr;
void phalanx_cuda_pass_log_to(phalanx::TakeLogLine* take) { take_line = take; }
void phalanx_cuda_say(const char* text) {
  take_line(phalanx::LogLevel::kWarning, std::source_location::current(), text);
}
}
