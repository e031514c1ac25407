// SPDX-License-Identifier: Apache-2.0
// In place of the NVIDIA driver, of LibTorch's part for CUDA and of our plug-in, which the machine of a test may lack.
// What they say is set by defines.
extern "C" {

int cuDriverGetVersion(int* version) {
  *version = PRETENDED_DRIVER;
  return 0;
}

int phalanx_cuda_runtime_version() { return 13000; }

int phalanx_cuda_device_count(const char** why) {
  *why = "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected";
  return PRETENDED_DEVICES;
}

int phalanx_cuda_answer() { return 42; }
}
