// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime for the fake devices: its streams and events are those of Streams, and its memory is theirs.
#include "framework/testing/fake_cuda/runtime.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "framework/testing/fake_device/graph.h"
#include "framework/testing/fake_device/memory.h"
#include "framework/testing/fake_device/streams.h"

namespace phalanx::testing {
namespace {

using PointPtr = Streams::PointPtr;

std::atomic<cudaError_t> broken{cudaSuccess};
std::atomic<int> physical_devices{0};
std::atomic<bool> ipc_refused{false};
struct MadeStreams {
  std::mutex mutex;
  std::map<cudaStream_t, std::int64_t> ids;
} made_streams;

thread_local cudaError_t last_error = cudaSuccess;

c10::impl::VirtualGuardImpl devices() { return c10::impl::VirtualGuardImpl(c10::kCUDA); }

cudaError_t result(cudaError_t error) {
  if (error == cudaSuccess) error = broken;
  if (error != cudaSuccess) last_error = error;
  return error;
}

// Runs the body unless an earlier error remains, and returns its error.
template <class Body>
cudaError_t call(const Body& body) {
  if (const cudaError_t error = result(cudaSuccess); error != cudaSuccess) return error;
  try {
    return result(body());
  } catch (const c10::OutOfMemoryError&) {
    return result(cudaErrorMemoryAllocation);
  }
}

PointPtr& point_of(cudaEvent_t event) { return *reinterpret_cast<PointPtr*>(event); }

// As call(), for what the thread that records a graph may not do.
template <class Body>
cudaError_t call_outside_graphs(const Body& body) {
  try {
    FakeGraph::refuse_while_recording("a call of the CUDA runtime");
  } catch (const c10::Error&) {
    return result(cudaErrorStreamCaptureUnsupported);
  }
  return call(body);
}

// A handle for memory works in other processes of CUDA only; here it names an address of the same process.
struct MemoryHandle {
  pid_t process;
  void* address;
};
static_assert(sizeof(MemoryHandle) <= sizeof(cudaIpcMemHandle_t));

}  // namespace

int stream_number(cudaStream_t stream) {
  if (stream != nullptr) return static_cast<int>(reinterpret_cast<std::intptr_t>(stream)) - 1;
  return Streams::global().number_of(devices().getDevice().index(), 0);
}

std::int64_t stream_id(cudaStream_t stream) {
  const std::lock_guard lock(made_streams.mutex);
  return made_streams.ids.at(stream);
}

void break_cuda(cudaError_t error) { broken = error; }
void share_devices(int count) { physical_devices = count; }
void refuse_ipc(bool refuse) { ipc_refused = refuse; }

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return call([&] {
    *count = devices().deviceCount();
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return call([&] {
    *device = devices().getDevice().index();
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return call([&] {
    if (device < 0 || device >= devices().deviceCount()) return cudaErrorInvalidDevice;
    devices().setDevice({c10::kCUDA, static_cast<c10::DeviceIndex>(device)});
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call([&] {
    const int shared = physical_devices;
    *properties = {};
    std::strcpy(properties->name, "Fake GPU");
    const int physical = shared > 0 ? device % shared : device;
    std::memcpy(properties->uuid.bytes, &physical, sizeof(physical));
    properties->totalGlobalMem = fake_memory().getMemoryInfo(0).second;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call_outside_graphs([] {
    Streams::global().synchronize_device(devices().getDevice().index());
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -1;
  return result(cudaSuccess);
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return result(cudaSuccess);
}

cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaGetLastError() {
  const cudaError_t error = broken != cudaSuccess ? broken.load() : last_error;
  last_error = cudaSuccess;
  return error;
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    case cudaErrorNotSupported:
      return "operation not supported";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    default:
      return "invalid argument";
  }
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return call_outside_graphs([&] {
    *memory = allocate_plain(bytes, devices().getDevice().index());
    return cudaSuccess;
  });
}

cudaError_t cudaFree(void* memory) {
  return call_outside_graphs(
      [&] { return memory == nullptr || free_plain(memory) ? cudaSuccess : cudaErrorInvalidValue; });
}

cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  return call([&] {
    Streams::global().launch({.name = "cudaMemset",
                              .stream = stream_number(nullptr),
                              .accesses = {{static_cast<std::byte*>(memory), bytes, true}}},
                             [=] { std::memset(mirror_of(memory), value, bytes); });
    return cudaSuccess;
  });
}

// Only the plug-in's headers name it.
cudaError_t cudaMemcpyAsync(void*, const void*, std::size_t, cudaMemcpyKind, cudaStream_t) {
  return result(cudaErrorNotSupported);
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call([&] {
    std::tie(*free, *total) = fake_memory().getMemoryInfo(devices().getDevice().index());
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  return call([&] {
    const std::lock_guard lock(made_streams.mutex);
    const std::int64_t id = 2 * Streams::kPool + 1 + static_cast<std::int64_t>(made_streams.ids.size());
    const int number = Streams::global().number_of(devices().getDevice().index(), id);
    *stream = reinterpret_cast<cudaStream_t>(static_cast<std::intptr_t>(number) + 1);
    made_streams.ids.emplace(*stream, id);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call_outside_graphs([&] {
    Streams::global().synchronize(stream_number(stream));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call_outside_graphs([&] {
    auto& streams = Streams::global();
    return streams.query(streams.record(stream_number(stream))) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call([&] {
    Streams::global().wait(stream_number(stream), point_of(event));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t, int* priority) {
  *priority = 0;
  return result(cudaSuccess);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  return call([&] {
    *status = FakeGraph::records() ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id) {
  if (id != nullptr) *id = 0;
  return cudaStreamIsCapturing(stream, status);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return result(cudaSuccess); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return call([&] {
    *event = reinterpret_cast<cudaEvent_t>(new PointPtr);
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<PointPtr*>(event);
  return result(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call([&] {
    point_of(event) = Streams::global().record(stream_number(stream));
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call_outside_graphs(
      [&] { return Streams::global().query(point_of(event)) ? cudaSuccess : cudaErrorNotReady; });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call_outside_graphs([&] {
    Streams::global().synchronize(point_of(event));
    return cudaSuccess;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 0;
  return result(cudaSuccess);
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) {
  if (ipc_refused) return result(cudaErrorNotSupported);
  const MemoryHandle named{.process = ::getpid(), .address = memory};
  std::memcpy(handle->reserved, &named, sizeof(named));
  return result(cudaSuccess);
}

cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned) {
  MemoryHandle named{};
  std::memcpy(&named, handle.reserved, sizeof(named));
  if (named.process != ::getpid()) return result(cudaErrorNotSupported);
  *memory = named.address;
  return result(cudaSuccess);
}

cudaError_t cudaIpcCloseMemHandle(void*) { return result(cudaSuccess); }
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t*, cudaEvent_t) { return result(cudaErrorNotSupported); }
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t*, cudaIpcEventHandle_t) { return result(cudaErrorNotSupported); }
}

}  // namespace phalanx::testing
