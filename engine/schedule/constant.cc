// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/schedule.h"
#include "framework/base/config/no_fields.h"

namespace phalanx {
namespace {

class Constant final : public Schedule {
 public:
  double factor(std::int64_t, std::int64_t) const override { return 1; }
};

const bool constant_registered = Schedules::global().add<NoFields>(
    "constant", "constant learning rate", [](const NoFields&) { return std::make_unique<Constant>(); });

}  // namespace
}  // namespace phalanx
