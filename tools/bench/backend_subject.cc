#include <ATen/ops/zeros.h>

#include "tools/bench/subject.h"

namespace phalanx::bench {
namespace {

class BackendSubject final : public Subject {
 public:
  explicit BackendSubject(CommunicatorPtr world) : world_(std::move(world)) {}

  int size() const override { return world_->size(); }
  at::Tensor allocate(const std::string& memory, std::int64_t elements) override {
    return memory == "registered" ? world_->allocate({elements}, at::kFloat) : at::zeros({elements});
  }
  void all_reduce(const at::Tensor& tensor) override { world_->all_reduce(tensor, Reduction::kSum).wait(); }
  void broadcast(const at::Tensor& tensor) override { world_->broadcast(tensor, 0).wait(); }
  void barrier() override { world_->barrier().wait(); }

 private:
  CommunicatorPtr world_;
};

}  // namespace

std::unique_ptr<Subject> make_backend_subject(CommunicatorPtr world) {
  return std::make_unique<BackendSubject>(std::move(world));
}

}  // namespace phalanx::bench
