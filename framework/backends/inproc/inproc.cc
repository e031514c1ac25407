#include <sys/mman.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/backends/direct/communicator.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"

namespace phalanx {
namespace {

// Ranks are threads: all memory is everybody's already, and a rank that ends says so by leaving its group.
class HeapFabric final : public direct::Fabric {
 public:
  Block create(std::size_t bytes) override {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      throw CommError(CommError::Kind::kSystem, "inproc: no memory for " + std::to_string(bytes) + " bytes");
    }
    kept_.push_back(std::make_unique<std::shared_ptr<void>>(memory, [bytes](void* begin) { ::munmap(begin, bytes); }));
    const auto address = reinterpret_cast<std::int64_t>(kept_.back().get());
    return {*kept_.back(), {.owner = 0, .token = address, .bytes = static_cast<std::int64_t>(bytes)}};
  }

  std::shared_ptr<void> open(const Handle& handle) override {
    return *reinterpret_cast<const std::shared_ptr<void>*>(handle.token);
  }

  void reserve(const Handle&, std::size_t, std::size_t) override {}
  void release() override { kept_.clear(); }
  bool reaches_everything() const override { return true; }
  bool alive(int) override { return true; }
  std::unique_ptr<Fabric> subset(std::span<const int>) override { return std::make_unique<HeapFabric>(); }

 private:
  std::vector<std::unique_ptr<std::shared_ptr<void>>> kept_;  // what handles point to, until release()
};

struct InprocConfig {
  template <class V>
  void visit(V&) {}
};

const bool registered = Backends::global().add<InprocConfig>(
    "inproc", "ranks are threads of one process", [](const InprocConfig&, const World& world) {
      return direct::connect("inproc", world, std::make_unique<HeapFabric>());
    });

}  // namespace
}  // namespace phalanx
