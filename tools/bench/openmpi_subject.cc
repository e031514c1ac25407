// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <mpi.h>

#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "framework/base/error.h"
#include "tools/bench/subject.h"

namespace phalanx::bench {
namespace {

void check(int status) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw CommError(CommError::Kind::kSystem, "Open MPI: " + std::string(text));
}

int world_rank() {
  int rank = 0;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  return rank;
}

int world_size() {
  int size = 0;
  check(MPI_Comm_size(MPI_COMM_WORLD, &size));
  return size;
}

at::Tensor allocate(const std::string& memory, std::int64_t elements) {
  if (memory != "registered") return at::zeros({elements});
  void* data = nullptr;
  const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(float);
  check(MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, &data));
  std::memset(data, 0, bytes);
  return at::from_blob(data, {elements}, [](void* memory) { MPI_Free_mem(memory); });
}

/// The tensors of a case and its calls of MPI.
class OpenMpiBench {
 public:
  explicit OpenMpiBench(const Case& what) : root_(world_rank() == kRoot) {
    const Sizes sizes = sizes_of(what, world_size());
    whole_ = allocate(what.memory, sizes.whole);
    count_ = static_cast<int>(sizes.whole);
    part_count_ = static_cast<int>(sizes.part);
    const Op op = find_operation(what.op).op;
    if (op == Op::kAllToAll) other_ = allocate(what.memory, sizes.whole);
    if (op != Op::kAllToAll && find_operation(what.op).partitioned) other_ = allocate(what.memory, sizes.part);
  }

  void run(Op op) const {
    void *whole = whole_.data_ptr(), *other = other_.defined() ? other_.data_ptr() : nullptr;
    const int n = part_count_;
    switch (op) {
      case Op::kBroadcast:
        return check(MPI_Bcast(whole, count_, MPI_FLOAT, kRoot, MPI_COMM_WORLD));
      case Op::kReduce:
        return check(
            MPI_Reduce(root_ ? MPI_IN_PLACE : whole, whole, count_, MPI_FLOAT, MPI_SUM, kRoot, MPI_COMM_WORLD));
      case Op::kAllReduce:
        return check(MPI_Allreduce(MPI_IN_PLACE, whole, count_, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
      case Op::kReduceScatter:
        return check(MPI_Reduce_scatter_block(whole, other, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
      case Op::kAllGather:
        return check(MPI_Allgather(other, n, MPI_FLOAT, whole, n, MPI_FLOAT, MPI_COMM_WORLD));
      case Op::kGather:
        return check(MPI_Gather(other, n, MPI_FLOAT, whole, n, MPI_FLOAT, kRoot, MPI_COMM_WORLD));
      case Op::kScatter:
        return check(MPI_Scatter(whole, n, MPI_FLOAT, other, n, MPI_FLOAT, kRoot, MPI_COMM_WORLD));
      case Op::kAllToAll:
        return check(MPI_Alltoall(whole, n, MPI_FLOAT, other, n, MPI_FLOAT, MPI_COMM_WORLD));
      case Op::kBarrier:
        return check(MPI_Barrier(MPI_COMM_WORLD));
      default:
        throw std::logic_error("not a collective: " + std::string(to_string(op)));
    }
  }

  void round_trip() const {
    const int rank = world_rank(), partner = rank ^ 1;
    if (partner >= world_size()) return;
    const auto send = [&] { check(MPI_Send(whole_.data_ptr(), count_, MPI_FLOAT, partner, 0, MPI_COMM_WORLD)); };
    if (rank < partner) send();
    check(MPI_Recv(whole_.data_ptr(), count_, MPI_FLOAT, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (rank > partner) send();
  }

  void launch(MPI_Request& request) const {
    check(MPI_Iallreduce(MPI_IN_PLACE, whole_.data_ptr(), count_, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request));
  }

 private:
  bool root_;
  int count_ = 0, part_count_ = 0;
  at::Tensor whole_, other_;
};

std::function<double(std::int64_t)> measured(const OpenMpiBench& bench, const Case& what) {
  if (what.op == "send_recv") return timed_round_trips([bench] { bench.round_trip(); });
  if (what.op == "launch") {
    const auto request = std::make_shared<MPI_Request>(MPI_REQUEST_NULL);
    return timed_launches([bench, request] { bench.launch(*request); },
                          [request] { check(MPI_Wait(request.get(), MPI_STATUS_IGNORE)); });
  }
  return timed([bench, op = find_operation(what.op).op] { bench.run(op); });
}

class OpenMpiSubject final : public Subject {
 public:
  std::string name() const override { return "openmpi"; }
  int size() const override { return world_size(); }
  std::vector<std::string> algorithms(const std::string&) const override { return {"native"}; }

  std::string absent(const Case& what) const override {
    if (what.op == "send_recv" && size() < 2) return "needs two ranks";
    const bool fits = sizes_of(what, size()).whole <= std::numeric_limits<int>::max();
    return fits ? "" : "its calls take at most 2^31 - 1 elements";
  }

  std::unique_ptr<Trial> prepare(const Case& what) override {
    return make_trial([] { check(MPI_Barrier(MPI_COMM_WORLD)); }, measured(OpenMpiBench(what), what));
  }
};

}  // namespace

std::unique_ptr<Subject> make_openmpi_subject() { return std::make_unique<OpenMpiSubject>(); }

}  // namespace phalanx::bench
