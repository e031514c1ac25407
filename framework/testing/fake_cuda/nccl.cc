// SPDX-License-Identifier: Apache-2.0
// The functions of the fake NCCL, which behave as those of NCCL 2.29 with regard to threads, states and errors.
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "framework/testing/fake_cuda/nccl_communicator.h"
#include "framework/testing/fake_cuda/nccl_faults.h"
#include "framework/testing/fake_device/graph.h"
#include "framework/testing/fake_device/memory.h"

namespace phalanx::testing {
namespace {

using Kind = NcclCall::Kind;
using CommunicatorPtr = std::shared_ptr<FakeNcclCommunicator>;

// The state of the process. An ncclComm_t is the address of a key of `communicators`.
struct Process {
  std::mutex mutex;
  std::map<ncclComm_t, CommunicatorPtr> communicators;
  std::map<std::string, std::shared_ptr<void>> unused_ids;  // by the name of their segment
  std::map<std::string, long, std::less<>> calls;
  std::intptr_t last_handle = 0;
};

// Never destroyed: threads may use it until the process ends.
Process& process() {
  static auto& process = *new Process;
  return process;
}

void count(const char* function) {
  const std::lock_guard lock(process().mutex);
  ++process().calls[function];
}

CommunicatorPtr find(ncclComm_t comm) {
  const std::lock_guard lock(process().mutex);
  const auto found = process().communicators.find(comm);
  if (found != process().communicators.end()) return found->second;
  set_last_nccl_error("no such communicator: it was destroyed or aborted, or never created");
  return nullptr;
}

ncclComm_t add(CommunicatorPtr communicator) {
  const std::lock_guard lock(process().mutex);
  const auto handle = reinterpret_cast<ncclComm_t>(++process().last_handle);
  process().communicators.emplace(handle, std::move(communicator));
  return handle;
}

CommunicatorPtr remove(ncclComm_t comm) {
  const CommunicatorPtr found = find(comm);
  const std::lock_guard lock(process().mutex);
  process().communicators.erase(comm);
  return found;
}

bool is_blocking(const ncclConfig_t* config) { return config == nullptr || config->blocking != 0; }

// The calls of this thread between ncclGroupStart and ncclGroupEnd.
thread_local int group_depth = 0;
thread_local std::vector<std::pair<CommunicatorPtr, NcclCall>> group_calls;
thread_local ncclResult_t group_error = ncclSuccess;

ncclResult_t launch(const CommunicatorPtr& communicator, const std::vector<NcclCall>& calls) {
  const bool captured = FakeGraph::records();
  return communicator->run(
      [communicator = communicator.get(), calls, captured] { return communicator->launch(calls, captured); });
}

ncclResult_t refuse(ncclResult_t result) {
  if (group_depth > 0) group_error = result;
  return result;
}

ncclResult_t enqueue(ncclComm_t comm, const NcclCall& call) {
  count(call.name.data());
  const CommunicatorPtr communicator = find(comm);
  if (!communicator) return refuse(ncclInvalidArgument);
  if (const auto ready = communicator->check_ready(); ready != ncclSuccess) {
    communicator->set_error(ready);
    return refuse(ready);
  }
  const bool is_valid =
      size_of(call.type) > 0 && call.op != ncclAvg && call.peer >= 0 && call.peer < communicator->size();
  if (!is_valid) return refuse(ncclInvalidArgument);
  if (call.count == 0) return ncclSuccess;
  if (group_depth == 0) return launch(communicator, {call});
  group_calls.emplace_back(communicator, call);
  return ncclSuccess;
}

}  // namespace

long nccl_communicators() {
  const std::lock_guard lock(process().mutex);
  return static_cast<long>(process().communicators.size());
}

long nccl_calls(const char* function) {
  const std::lock_guard lock(process().mutex);
  const auto found = process().calls.find(function);
  return found == process().calls.end() ? 0 : found->second;
}

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "internal error";
  }
}

const char* ncclGetLastError(ncclComm_t) {
  thread_local std::string text;
  text = last_nccl_error();
  return text.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const auto made = NcclSegment::make();
  *id = {};
  made.name.copy(id->internal, sizeof(id->internal) - 1);
  const std::lock_guard lock(process().mutex);
  process().unused_ids[made.name] = made.keep;
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return ncclUnhandledCudaError;
  if (ranks > NcclSegment::kMostRanks || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  const auto communicator = std::make_shared<FakeNcclCommunicator>(rank, ranks, device, is_blocking(config));
  *comm = add(communicator);
  // Names are used again, so only one rank forgets this one.
  return communicator->run([communicator = communicator.get(), rank, name = std::string(id.internal)] {
    const ncclResult_t result = communicator->connect(name);
    const std::lock_guard lock(process().mutex);
    if (result == ncclSuccess && rank == 0) process().unused_ids.erase(name);
    return result;
  });
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* child, ncclConfig_t* config) {
  const CommunicatorPtr parent = find(comm);
  if (!parent) return ncclInvalidArgument;
  if (const auto ready = parent->check_ready(); ready != ncclSuccess) return ready;
  *child = NCCL_COMM_NULL;
  return parent->run([parent = parent.get(), color, key, child, blocking = is_blocking(config)] {
    CommunicatorPtr made;
    const ncclResult_t result = parent->split(color, key, blocking, made);
    if (result == ncclSuccess && made) *child = add(std::move(made));
    return result;
  });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const CommunicatorPtr communicator = find(comm);
  if (!communicator) return ncclInvalidArgument;
  if (const auto ready = communicator->check_ready(); ready != ncclSuccess) return ready;
  return communicator->run([communicator = communicator.get()] { return communicator->finish_operations(); });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const CommunicatorPtr communicator = remove(comm);
  if (!communicator) return ncclInvalidArgument;
  communicator->join();
  return communicator->finish_operations();
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (comm == NCCL_COMM_NULL) return ncclSuccess;
  const CommunicatorPtr communicator = remove(comm);
  if (!communicator) return ncclInvalidArgument;
  return communicator->abort();
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
  const CommunicatorPtr communicator = find(comm);
  if (!communicator) return ncclInvalidArgument;
  *result = communicator->async_error();
  return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  const CommunicatorPtr communicator = find(comm);
  if (!communicator) return ncclInvalidArgument;
  *count = communicator->size();
  return communicator->check_ready();
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  const CommunicatorPtr communicator = find(comm);
  if (!communicator) return ncclInvalidArgument;
  *rank = communicator->rank();
  return communicator->check_ready();
}

ncclResult_t ncclMemAlloc(void** memory, std::size_t bytes) {
  return cudaMalloc(memory, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclMemFree(void* memory) {
  return cudaFree(memory) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclCommRegister(ncclComm_t comm, void* memory, std::size_t, void** handle) {
  const CommunicatorPtr communicator = find(comm);
  if (!communicator || !is_device_address(memory)) return ncclInvalidArgument;
  *handle = memory;
  return communicator->check_ready();
}

ncclResult_t ncclCommDeregister(ncclComm_t comm, void*) { return find(comm) ? ncclSuccess : ncclInvalidArgument; }

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}

// The calls of each communicator become one kernel.
ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return ncclInvalidUsage;
  if (--group_depth > 0) return ncclSuccess;
  const auto calls = std::exchange(group_calls, {});
  const ncclResult_t error = std::exchange(group_error, ncclSuccess);
  if (error != ncclSuccess) return error;
  std::vector<CommunicatorPtr> communicators;
  for (const auto& [communicator, call] : calls) {
    if (std::ranges::find(communicators, communicator) == communicators.end()) communicators.push_back(communicator);
  }
  ncclResult_t result = ncclSuccess;
  for (const auto& communicator : communicators) {
    std::vector<NcclCall> own;
    for (const auto& [other, call] : calls) {
      if (other == communicator) own.push_back(call);
    }
    const ncclResult_t launched = launch(communicator, own);
    if (launched != ncclSuccess) result = launched;
  }
  return result;
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, {"ncclBroadcast", Kind::kBroadcast, from, to, count, type, ncclSum, root, stream});
}

ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, {"ncclReduce", Kind::kReduce, from, to, count, type, op, root, stream});
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, {"ncclAllReduce", Kind::kAllReduce, from, to, count, type, op, 0, stream});
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, {"ncclReduceScatter", Kind::kReduceScatter, from, to, count, type, op, 0, stream});
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return enqueue(comm, {"ncclAllGather", Kind::kAllGather, from, to, count, type, ncclSum, 0, stream});
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return enqueue(comm, {"ncclSend", Kind::kSend, from, nullptr, count, type, ncclSum, peer, stream});
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return enqueue(comm, {"ncclRecv", Kind::kRecv, nullptr, to, count, type, ncclSum, peer, stream});
}
}

}  // namespace phalanx::testing
