// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/write_status.h"

#include <ATen/ops/zeros.h>

#include <utility>

#include "framework/comm/operations/measured_inputs.h"

namespace phalanx {
namespace {

constexpr std::int64_t kColumns = 7;

FileRecord record_of(const std::int64_t* bytes_and_crc) {
  return {{}, static_cast<std::uint64_t>(bytes_and_crc[0]), static_cast<std::uint32_t>(bytes_and_crc[1])};
}

}  // namespace

WriteStatuses::WriteStatuses(CommunicatorPtr world)
    : world_(std::move(world)),
      mine_(at::zeros({kColumns}, at::kLong)),
      all_(at::zeros({kColumns * world_->size()}, at::kLong)) {}

void WriteStatuses::launch(const WriteStatus& mine) {
  auto* row = mine_.data_ptr<std::int64_t>();
  row[0] = mine.stage;
  row[1] = static_cast<std::int64_t>(mine.weights.bytes);
  row[2] = mine.weights.crc;
  row[3] = static_cast<std::int64_t>(mine.state.bytes);
  row[4] = mine.state.crc;
  row[5] = mine.troubled ? 1 : 0;
  row[6] = mine.impatient_in;
  const MeasuredInputs measured;  // how far each rank is with writing
  exchange_ = world_->all_gather(all_, mine_);
}

void WriteStatuses::finish() {
  exchange_.wait();
  exchange_ = {};
}

WriteStatus WriteStatuses::of(int rank) const {
  const auto* row = all_.data_ptr<std::int64_t>() + rank * kColumns;
  return {.stage = static_cast<WriteStatus::Stage>(row[0]),
          .weights = record_of(row + 1),
          .state = record_of(row + 3),
          .troubled = row[5] != 0,
          .impatient_in = row[6]};
}

void WriteStatuses::clear() { all_.zero_(); }

}  // namespace phalanx
