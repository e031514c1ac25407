// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/zeros.h>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <stdexcept>
#include <utility>

#include "framework/base/environment.h"
#include "third_party/gloo/full_mesh.h"
#include "tools/bench/subject.h"
#include "tools/bench/timed.h"

namespace phalanx::bench {
namespace {

using Context = std::shared_ptr<gloo::Context>;

/// A store for Gloo's rendezvous that uses a Phalanx store.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  explicit GlooStore(StorePtr store) : store_(std::move(store)) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_->set(key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_->get(key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const auto& key : keys) store_->get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override { wait(keys); }

 private:
  StorePtr store_;
};

Context connect(const RankInfo& rank_info, StorePtr store, Seconds timeout) {
  const std::string interface = rank_info.one_host() ? "127.0.0.1" : host_name();
  auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(interface.c_str()));
  const auto context = std::make_shared<gloo::rendezvous::Context>(rank_info.rank, rank_info.size);
  context->setTimeout(std::chrono::duration_cast<std::chrono::milliseconds>(timeout));
  const auto rendezvous = std::make_shared<GlooStore>(make_prefix_store("bench/gloo", std::move(store)));
  connect_full_mesh(*context, rendezvous, device);
  return context;
}

void synchronize(const Context& context) {
  gloo::BarrierOptions options(context);
  gloo::barrier(options);
}

/// The tensors of a case and its calls of Gloo.
class GlooBench {
 public:
  GlooBench(Context context, const Case& what) : context_(std::move(context)) {
    sizes_ = sizes_of(what, context_->size);
    whole_ = at::zeros({sizes_.whole});
    const Op op = find_operation(what.op).op;
    if (op == Op::kAllToAll) other_ = at::zeros({sizes_.whole});
    if (op != Op::kAllToAll && find_operation(what.op).partitioned) other_ = at::zeros({sizes_.part});
  }

  void run(Op op) const {
    switch (op) {
      case Op::kBroadcast:
        return broadcast();
      case Op::kReduce:
        return reduce();
      case Op::kAllReduce:
        return all_reduce();
      case Op::kAllGather:
        return all_gather();
      case Op::kGather:
        return gather();
      case Op::kScatter:
        return scatter();
      case Op::kAllToAll:
        return all_to_all();
      case Op::kBarrier:
        return synchronize(context_);
      default:
        throw std::logic_error("Gloo has no such collective: " + std::string(to_string(op)));
    }
  }

  void round_trip() const {
    const int partner = context_->rank ^ 1;
    if (partner >= context_->size) return;
    const auto buffer = context_->createUnboundBuffer(whole(), static_cast<std::size_t>(sizes_.bytes()));
    const auto send = [&] { buffer->send(partner, 0), buffer->waitSend(context_->getTimeout()); };
    if (context_->rank < partner) send();
    buffer->recv(partner, 0);
    buffer->waitRecv(context_->getTimeout());
    if (context_->rank > partner) send();
  }

 private:
  bool root() const { return context_->rank == kRoot; }
  float* whole() const { return whole_.data_ptr<float>(); }
  float* other() const { return other_.data_ptr<float>(); }
  std::size_t count() const { return static_cast<std::size_t>(sizes_.whole); }
  std::size_t part() const { return static_cast<std::size_t>(sizes_.part); }

  template <class Options>
  static void set_sum(Options& options) {
    options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
  }

  void broadcast() const {
    gloo::BroadcastOptions options(context_);
    options.setOutput(whole(), count());
    options.setRoot(kRoot);
    gloo::broadcast(options);
  }
  void reduce() const {
    gloo::ReduceOptions options(context_);
    options.setOutput(whole(), count());
    options.setRoot(kRoot);
    set_sum(options);
    gloo::reduce(options);
  }
  void all_reduce() const {
    gloo::AllreduceOptions options(context_);
    options.setOutput(whole(), count());
    set_sum(options);
    gloo::allreduce(options);
  }
  void all_gather() const {
    gloo::AllgatherOptions options(context_);
    options.setInput(other(), part());
    options.setOutput(whole(), count());
    gloo::allgather(options);
  }
  void gather() const {
    gloo::GatherOptions options(context_);
    options.setInput(other(), part());
    if (root()) options.setOutput(whole(), count());
    options.setRoot(kRoot);
    gloo::gather(options);
  }
  void scatter() const {
    gloo::ScatterOptions options(context_);
    std::vector<float*> parts;
    for (std::size_t rank = 0; root() && rank < count() / part(); ++rank) parts.push_back(whole() + rank * part());
    if (root()) options.setInputs(parts, part());
    options.setOutput(other(), part());
    options.setRoot(kRoot);
    gloo::scatter(options);
  }
  void all_to_all() const {
    gloo::AlltoallOptions options(context_);
    options.setInput(whole(), count());
    options.setOutput(other(), count());
    gloo::alltoall(options);
  }

  Context context_;
  Sizes sizes_;
  at::Tensor whole_, other_;
};

class GlooSubject final : public Subject {
 public:
  explicit GlooSubject(Context context) : context_(std::move(context)) {}

  std::string name() const override { return "libgloo"; }
  int size() const override { return context_->size; }
  std::vector<std::string> algorithms(const std::string&) const override { return {"native"}; }

  std::string absent(const Case& what) const override {
    if (what.op == "reduce_scatter") return "Gloo has no such function";
    if (what.op == "launch") return "Gloo's functions block";
    return what.op == "send_recv" && size() < 2 ? "needs two ranks" : "";
  }

  std::unique_ptr<Trial> prepare(const Case& what) override {
    const GlooBench bench(context_, what);
    const auto measured = what.op == "send_recv" ? timed_round_trips([bench] { bench.round_trip(); })
                                                 : timed([bench, op = find_operation(what.op).op] { bench.run(op); });
    return make_trial([context = context_] { synchronize(context); }, measured);
  }

 private:
  Context context_;
};

}  // namespace

std::unique_ptr<Subject> make_gloo_subject(const RankInfo& rank_info, StorePtr store, Seconds timeout) {
  return std::make_unique<GlooSubject>(connect(rank_info, std::move(store), timeout));
}

}  // namespace phalanx::bench
