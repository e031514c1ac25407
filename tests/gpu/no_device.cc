// SPDX-License-Identifier: Apache-2.0
// A driver, libcuda.so.1, that finds no device, for tests on machines without a driver. CUDA's runtime asks it for each
// function by name. Functions that are not here return the error that there is no device.
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kSuccess = 0, kNoDevice = 100;  // CUDA_SUCCESS, CUDA_ERROR_NO_DEVICE

int has_no_device() { return kNoDevice; }

}  // namespace

extern "C" {

int cuInit(unsigned) { return kNoDevice; }

// The version of CUDA that the driver supports is the one in PHALANX_TEST_DRIVER, such as 12080, or else 13.0.
int cuDriverGetVersion(int* version) {
  const char* const wanted = std::getenv("PHALANX_TEST_DRIVER");
  *version = wanted != nullptr ? std::atoi(wanted) : 13000;
  return kSuccess;
}

int cuGetErrorName(int, const char** name) {
  *name = "CUDA_ERROR_NO_DEVICE";
  return kSuccess;
}

int cuGetErrorString(int, const char** text) {
  *text = "no CUDA-capable device is detected";
  return kSuccess;
}

int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long, int* found) {
  const auto is = [name](const char* other) { return std::strcmp(name, other) == 0; };
  *function = is("cuDriverGetVersion")    ? reinterpret_cast<void*>(&cuDriverGetVersion)
              : is("cuGetErrorName")      ? reinterpret_cast<void*>(&cuGetErrorName)
              : is("cuGetErrorString")    ? reinterpret_cast<void*>(&cuGetErrorString)
              : is("cuGetProcAddress")    ? reinterpret_cast<void*>(&cuGetProcAddress_v2)
              : is("cuGetProcAddress_v2") ? reinterpret_cast<void*>(&cuGetProcAddress_v2)
                                          : reinterpret_cast<void*>(&has_no_device);
  if (found != nullptr) *found = 0;  // CU_GET_PROC_ADDRESS_SUCCESS
  return kSuccess;
}
}
