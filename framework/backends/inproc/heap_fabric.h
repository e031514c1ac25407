// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "framework/backends/shared_memory/fabric.h"

namespace phalanx::inproc {

/// A fabric for the threads of one process, all of whose memory is within reach of all ranks. A rank that ends
/// announces it by leaving its group.
class HeapFabric final : public shared_memory::Fabric {
 public:
  /// The memory of other ranks that a rank reads itself. The last two are for tests of ranks that are processes.
  enum class Reach {
    kEverything,
    kBlocks,   // only memory that was created here
    kFetched,  // the same, and fetch() copies other memory
  };

  explicit HeapFabric(Reach reach = Reach::kEverything) : reach_(reach) {}

  Block create(std::size_t bytes) override;
  std::shared_ptr<void> open(const Handle& handle) override;
  void reserve(const Handle&, std::size_t, std::size_t) override {}
  void release() override { kept_.clear(); }
  bool reaches_everything() const override { return reach_ == Reach::kEverything; }
  bool fetches() const override { return reach_ == Reach::kFetched; }
  void fetch(int rank, std::byte* to, const std::byte* from, std::size_t bytes) override;
  bool alive(int) override { return true; }
  std::unique_ptr<Fabric> subset(std::span<const int>) override { return std::make_unique<HeapFabric>(reach_); }

 private:
  Reach reach_;
  std::vector<std::shared_ptr<void>> kept_;  // blocks created here, until release()
};

}  // namespace phalanx::inproc
