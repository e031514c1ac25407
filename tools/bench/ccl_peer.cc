// SPDX-License-Identifier: Apache-2.0
// Measures oneCCL over Intel MPI next to a rank (peer_program.h). bench compiles this file with oneCCL's headers.
#include <mpi.h>

#include <memory>
#include <oneapi/ccl.hpp>
#include <stdexcept>
#include <string>

#include "tools/bench/mpi_calls.h"
#include "tools/bench/peer_program.h"

namespace phalanx::bench {
namespace {

constexpr int kRootRank = 0;

// Ranks meet through the address of rank 0, which MPI broadcasts.
ccl::communicator connect() {
  ccl::init();
  ccl::kvs::address_type address{};
  std::shared_ptr<ccl::kvs> meeting;
  if (mpi_rank() == kRootRank) {
    meeting = ccl::create_main_kvs();
    address = meeting->get_address();
  }
  check_mpi(MPI_Bcast(address.data(), static_cast<int>(address.size()), MPI_BYTE, kRootRank, MPI_COMM_WORLD));
  if (!meeting) meeting = ccl::create_kvs(address);
  return ccl::create_communicator(mpi_size(), mpi_rank(), meeting);
}

/// The buffers of a case and its calls of oneCCL.
class CclBench {
 public:
  CclBench(const ccl::communicator& world, const PeerCase& what)
      : world_(world),
        whole_(private_memory(what.whole)),
        other_(private_memory(other_elements(what))),
        count_(static_cast<std::size_t>(what.whole)),
        part_(static_cast<std::size_t>(what.part)) {}

  ccl::event all_reduce() const { return ccl::allreduce(whole(), whole(), count_, kType, ccl::reduction::sum, world_); }

  ccl::event launch(const std::string& op) const {
    if (op == "all_reduce") return all_reduce();
    if (op == "broadcast") return ccl::broadcast(whole(), count_, kType, kRootRank, world_);
    if (op == "reduce") return ccl::reduce(whole(), whole(), count_, kType, ccl::reduction::sum, kRootRank, world_);
    if (op == "all_gather") return ccl::allgather(other(), whole(), part_, kType, world_);
    if (op == "reduce_scatter") {
      return ccl::reduce_scatter(whole(), other(), part_, kType, ccl::reduction::sum, world_);
    }
    if (op == "all_to_all") return ccl::alltoall(whole(), other(), part_, kType, world_);
    if (op == "barrier") return ccl::barrier(world_);
    throw std::invalid_argument("oneCCL has no such collective: " + op);
  }

  void round_trip() const {
    const int rank = world_.rank(), partner = rank ^ 1;
    if (partner >= world_.size()) return;
    const auto send = [&] { ccl::send(whole(), count_, kType, partner, world_).wait(); };
    if (rank < partner) send();
    ccl::recv(whole(), count_, kType, partner, world_).wait();
    if (rank > partner) send();
  }

 private:
  static constexpr auto kType = ccl::datatype::float32;

  // As untyped memory, which is what the functions take.
  void* whole() const { return whole_.get(); }
  void* other() const { return other_.get(); }

  const ccl::communicator& world_;
  std::shared_ptr<float> whole_, other_;
  std::size_t count_, part_;
};

Measure prepare(const ccl::communicator& world, const PeerCase& what) {
  const auto bench = std::make_shared<CclBench>(world, what);
  if (what.op == "send_recv") return timed_round_trips([bench] { bench->round_trip(); });
  if (what.op == "launch") {
    const auto event = std::make_shared<ccl::event>();
    return timed_launches([bench, event] { *event = bench->all_reduce(); }, [event] { event->wait(); });
  }
  return timed([bench, op = what.op] { bench->launch(op).wait(); });
}

void serve(RankConnection& rank) {
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));  // oneCCL has its own threads
  {
    const ccl::communicator world = connect();
    rank.send("ready");
    serve_rank(
        rank, [] { check_mpi(MPI_Barrier(MPI_COMM_WORLD)); },
        [&world](const PeerCase& what) { return prepare(world, what); });
  }
  check_mpi(MPI_Finalize());
}

}  // namespace
}  // namespace phalanx::bench

int main(int count, char** words) { return phalanx::bench::run_peer("ccl_peer", count, words, phalanx::bench::serve); }
