#include "engine/schedule/schedule.h"

namespace phalanx {
namespace {

struct ConstantConfig {
  template <class V>
  void visit(V&) {}
};

class Constant final : public Schedule {
 public:
  double factor(std::int64_t, std::int64_t) const override { return 1; }
};

const bool registered =
    Schedules::global().add<ConstantConfig>("constant", "the optimizer's learning rate all along",
                                            [](const ConstantConfig&) { return std::make_unique<Constant>(); });

}  // namespace
}  // namespace phalanx
