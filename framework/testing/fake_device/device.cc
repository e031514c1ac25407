// SPDX-License-Identifier: Apache-2.0
// The device `fake`, for tests. It poses as CUDA, so far as LibTorch's CPU library knows CUDA, but its kernels
// compute on the CPU. Code that runs on it takes the same paths as on a GPU, in the same threads. See memory.h for its
// memory.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/backends/device/device_communicator.h"
#include "framework/base/config/no_fields.h"
#include "framework/base/device_graph.h"
#include "framework/base/environment.h"
#include "framework/comm/device_kind.h"
#include "framework/comm/texts.h"
#include "framework/testing/fake_device/contexts.h"
#include "framework/testing/fake_device/graph.h"
#include "framework/testing/fake_device/memory.h"
#include "framework/testing/fake_device/operators.h"
#include "framework/testing/fake_device/pinned_memory.h"
#include "framework/testing/fake_device/streams.h"

namespace phalanx::testing {
namespace {

constexpr c10::DeviceIndex kDevices = 8;

thread_local c10::DeviceIndex current_device = 0;
std::array<std::atomic<bool>, kDevices> contexts{};
thread_local std::int64_t current_stream[kDevices] = {};

int number_of(const c10::Stream& stream) { return Streams::global().number_of(stream.device_index(), stream.id()); }

// Devices, streams and events as LibTorch sees them; see streams.h. An event is a Streams::PointPtr.
class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  c10::Device getDevice() const override { return {c10::kCUDA, current_device}; }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) current_device = device.index();
  }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() < kDevices, "there is no ", device);
    uncheckedSetDevice(device);
    contexts[static_cast<std::size_t>(current_device)] = true;
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Stream getStream(c10::Device device) const override { return stream(device, current_stream[device.index()]); }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream(device, 0); }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return getStreamFromGlobalPool(device, priority < 0);
  }
  // Gives away the streams of the pool in turn, as LibTorch does for CUDA: with more than kPool, some are the same.
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    static std::atomic<std::int64_t> given{0};
    return stream(device, 1 + given++ % Streams::kPool + (high_priority ? Streams::kPool : 0));
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = getStream(stream.device());
    current_stream[stream.device_index()] = stream.id();
    return before;
  }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (*event == nullptr) *event = new Streams::PointPtr;
    point_of(*event) = Streams::global().record(number_of(stream));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) Streams::global().wait(number_of(stream), point_of(event));
  }
  bool queryEvent(void* event) const override {
    FakeGraph::refuse_while_recording("query of an event");
    return event == nullptr || Streams::global().query(point_of(event));
  }
  double elapsedTime(void* first, void* second, const c10::DeviceIndex) const override {
    return Streams::global().milliseconds_between(point_of(first), point_of(second));
  }
  void synchronizeEvent(void* event) const override {
    FakeGraph::refuse_while_recording("wait for an event");
    if (event != nullptr) Streams::global().synchronize(point_of(event));
  }
  // As LibTorch's guard for CUDA, which sets the device of the event and then the previous one.
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (event == nullptr) return;
    contexts[static_cast<std::size_t>(current_device)] = true;
    delete static_cast<Streams::PointPtr*>(event);
  }
  bool queryStream(const c10::Stream& stream) const override {
    FakeGraph::refuse_while_recording("query of a stream");
    return Streams::global().query(Streams::global().record(number_of(stream)));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    FakeGraph::refuse_while_recording("wait for a stream");
    Streams::global().synchronize(number_of(stream));
  }
  void synchronizeDevice(const c10::DeviceIndex device) const override {
    FakeGraph::refuse_while_recording("wait for a device");
    Streams::global().synchronize_device(device);
  }
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13  // older versions do not ask
  bool isStreamCapturing(const c10::Stream&) const override { return FakeGraph::records(); }
#endif
  void recordDataPtrOnStream(const c10::DataPtr& memory, const c10::Stream& stream) const override {
    fake_memory().recordStream(memory, stream);
  }

 private:
  static Streams::PointPtr& point_of(void* event) { return *static_cast<Streams::PointPtr*>(event); }
  static c10::Stream stream(c10::Device device, std::int64_t id) {
    const auto index = device.has_index() ? device.index() : current_device;
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kCUDA, index), id);
  }
};

struct Hooks final : at::CUDAHooksInterface {
  explicit Hooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  int getNumGPUs() const override { return kDevices; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  long versionCUDART() const override { return 13000; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  c10::DeviceIndex current_device() const override { return phalanx::testing::current_device; }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  void setCurrentDevice(c10::DeviceIndex device) const override { phalanx::testing::current_device = device; }
  void deviceSynchronize(c10::DeviceIndex device) const override { Guard().synchronizeDevice(device); }
  at::Device getDeviceFromPtr(void*) const override { return {c10::kCUDA, current_device()}; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory(); }
  bool isPinnedPtr(const void* address) const override { return is_pinned_address(address); }
  c10::Allocator* getCUDADeviceAllocator() const override { return &fake_memory(); }

  // The generators are CPU generators, since the operators run on the CPU.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    static const std::vector<at::Generator> generators = [] {
      std::vector<at::Generator> all;
      for (int i = 0; i < kDevices; ++i) all.push_back(at::detail::createCPUGenerator());
      return all;
    }();
    return generators.at(static_cast<std::size_t>(device < 0 ? current_device() : device));
  }
};

// Peer memory of ranks that are threads and therefore share all memory.
class PeersInThreads final : public PeerMemory {
 public:
  explicit PeersInThreads(c10::Device device) : device_(device) {}

  at::Device device() const override { return device_; }
  at::Tensor allocate(std::int64_t bytes) override {
    at::Tensor memory = at::zeros({bytes}, at::device(device_).dtype(at::kByte));
    kept_.push_back(memory);
    return memory;
  }
  void free(const at::Tensor& memory) override {
    std::erase_if(kept_, [&](const at::Tensor& kept) { return kept.is_same(memory); });
  }
  std::string handle_of(const at::Tensor& memory) override {
    return std::to_string(reinterpret_cast<std::uintptr_t>(memory.data_ptr()));
  }
  at::Tensor open(const std::string& handle, std::int64_t bytes) override {
    void* const address = reinterpret_cast<void*>(static_cast<std::uintptr_t>(std::stoull(handle)));
    return at::for_blob(address, {bytes})
        .options(at::device(device_).dtype(at::kByte))
        .target_device(device_)
        .make_tensor();
  }

 private:
  c10::Device device_;
  std::vector<at::Tensor> kept_;
};

std::shared_ptr<PeerGroup> peers_of(Communicator& host, c10::Device own) {
  const auto processes = all_gather_text(std::to_string(::getpid()), host);
  if (std::ranges::count(processes, processes[0]) < host.size()) return nullptr;
  constexpr std::int64_t kSmallWindow = 4096;  // small, so most tensors take several rounds
  return std::make_shared<PeerGroup>(std::make_shared<PeersInThreads>(own), kSmallWindow);
}

class FakeDeviceKind final : public DeviceKind {
 public:
  c10::DeviceType type() const override { return c10::kCUDA; }
  std::string missing() const override { return ""; }
  int count() const override { return kDevices; }
  CommunicatorPtr connect(CommunicatorPtr host, c10::Device own, Seconds) const override {
    auto peers = peers_of(*host, own);
    return std::make_shared<DeviceCommunicator>(std::move(host), c10::kCUDA,
                                                DeviceCommunicator::Paths{.peers = std::move(peers)});
  }
};

// Not registered if tests use a real device, given in PHALANX_TEST_DEVICE.
bool enter() {
  if (environment("PHALANX_TEST_DEVICE")) return false;
  static const Guard guard;
  static const c10::impl::DeviceGuardImplRegistrar guards(c10::kCUDA, &guard);
  c10::SetAllocator(c10::kCUDA, &fake_memory());
  at::CUDAHooksRegistry()->Register("CUDAHooks", [](at::CUDAHooksArgs args) { return std::make_unique<Hooks>(args); });
  set_device_graphs(c10::kCUDA, [] { return std::make_unique<FakeGraph>(); });
  register_operators();
  DeviceKinds::global().add<NoFields>(
      "fake", "for tests: computes on the CPU, in memory that the CPU cannot read",
      [](const NoFields&) -> std::shared_ptr<const DeviceKind> { return std::make_shared<FakeDeviceKind>(); });
  return true;
}

const bool entered = enter();

}  // namespace

bool has_context(c10::DeviceIndex device) { return contexts.at(static_cast<std::size_t>(device)); }

void forget_contexts() {
  for (auto& context : contexts) context = false;
}

}  // namespace phalanx::testing
