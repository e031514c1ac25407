// SPDX-License-Identifier: Apache-2.0
// Replaces the NVIDIA driver, libtorch_cuda.so and our plug-in, so that tests need none of them. Defines set the
// versions and the number of devices that it reports.
extern "C" {

int cuDriverGetVersion(int* version) {
  *version = FAKE_DRIVER;
  return 0;
}

int phalanx_cuda_runtime_version() { return 13000; }

int phalanx_cuda_device_count(const char** why) {
  *why = "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected";
  return FAKE_DEVICES;
}

int phalanx_cuda_answer() { return 42; }
}
