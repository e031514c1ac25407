// SPDX-License-Identifier: Apache-2.0
#include "phalanx/distributed_data_parallel.h"

#include "phalanx/internal/replica.h"

namespace phalanx {

DistributedDataParallel::DistributedDataParallel(torch::nn::Module& module, World& world, const Options& options)
    : replica_(std::make_unique<Replica>(module, world, options)) {}

DistributedDataParallel::~DistributedDataParallel() = default;
DistributedDataParallel::DistributedDataParallel(DistributedDataParallel&&) noexcept = default;
DistributedDataParallel& DistributedDataParallel::operator=(DistributedDataParallel&&) noexcept = default;

NoSync DistributedDataParallel::no_sync() { return NoSync(*replica_); }
int DistributedDataParallel::join() { return replica_->join(); }
void DistributedDataParallel::after_step() { replica_->after_step(); }
void DistributedDataParallel::finish() { replica_->finish(); }

const std::string& DistributedDataParallel::strategy() const { return replica_->exchange().choice().selected(); }

NoSync::NoSync(DistributedDataParallel::Replica& replica) : replica_(replica) { replica_.pause(); }
NoSync::~NoSync() { replica_.resume(); }

}  // namespace phalanx
