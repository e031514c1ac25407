#include <ATen/ops/zeros.h>
#include <mpi.h>

#include "framework/base/error.h"
#include "tools/bench/subject.h"

namespace phalanx::bench {
namespace {

void check(int status) {
  if (status != MPI_SUCCESS) throw CommError(CommError::Kind::kSystem, "Open MPI: a call failed");
}

class OpenMpiSubject final : public Subject {
 public:
  int size() const override {
    int size = 0;
    check(MPI_Comm_size(MPI_COMM_WORLD, &size));
    return size;
  }
  at::Tensor allocate(const std::string&, std::int64_t elements) override { return at::zeros({elements}); }
  void all_reduce(const at::Tensor& tensor) override {
    check(MPI_Allreduce(MPI_IN_PLACE, tensor.data_ptr(), count(tensor), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
  }
  void broadcast(const at::Tensor& tensor) override {
    check(MPI_Bcast(tensor.data_ptr(), count(tensor), MPI_FLOAT, 0, MPI_COMM_WORLD));
  }
  void barrier() override { check(MPI_Barrier(MPI_COMM_WORLD)); }

 private:
  static int count(const at::Tensor& tensor) { return static_cast<int>(tensor.numel()); }
};

}  // namespace

std::unique_ptr<Subject> make_openmpi_subject() { return std::make_unique<OpenMpiSubject>(); }

}  // namespace phalanx::bench
