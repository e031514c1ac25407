// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <mpi.h>

#include <cstring>
#include <limits>

#include "tools/bench/mpi_calls.h"
#include "tools/bench/subject.h"

namespace phalanx::bench {
namespace {

at::Tensor allocate(const std::string& memory, std::int64_t elements) {
  if (memory != "registered") return at::zeros({elements});
  void* data = nullptr;
  const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(float);
  check_mpi(MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, &data));
  std::memset(data, 0, bytes);
  return at::from_blob(data, {elements}, [](void* memory) { MPI_Free_mem(memory); });
}

/// The tensors of a case.
struct Tensors {
  at::Tensor whole, other;
};

Tensors tensors_of(const Case& what, const Sizes& sizes) {
  const auto& operation = find_operation(what.op);
  Tensors tensors{.whole = allocate(what.memory, sizes.whole), .other = {}};
  if (operation.op == Op::kAllToAll) {
    tensors.other = allocate(what.memory, sizes.whole);
  } else if (operation.partitioned) {
    tensors.other = allocate(what.memory, sizes.part);
  }
  return tensors;
}

Measure measured(const Case& what) {
  const Sizes sizes = sizes_of(what, mpi_size());
  const Tensors tensors = tensors_of(what, sizes);
  const MpiBuffers buffers{.whole = tensors.whole.data_ptr(),
                           .other = tensors.other.defined() ? tensors.other.data_ptr() : nullptr,
                           .count = static_cast<int>(sizes.whole),
                           .part = static_cast<int>(sizes.part)};
  return [tensors, measure = measure_mpi(what.op, buffers)](std::int64_t repeats) { return measure(repeats); };
}

class OpenMpiSubject final : public Subject {
 public:
  std::string name() const override { return "openmpi"; }
  int size() const override { return mpi_size(); }
  std::vector<std::string> algorithms(const std::string&) const override { return {"native"}; }

  std::string absent(const Case& what) const override {
    if (what.op == "send_recv" && size() < 2) return "needs two ranks";
    const bool fits = sizes_of(what, size()).whole <= std::numeric_limits<int>::max();
    return fits ? "" : "its calls take at most 2^31 - 1 elements";
  }

  std::unique_ptr<Trial> prepare(const Case& what) override {
    return make_trial([] { check_mpi(MPI_Barrier(MPI_COMM_WORLD)); }, measured(what));
  }
};

}  // namespace

std::unique_ptr<Subject> make_openmpi_subject() { return std::make_unique<OpenMpiSubject>(); }

}  // namespace phalanx::bench
