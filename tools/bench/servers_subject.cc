// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/full.h>

#include <array>
#include <utility>

#include "framework/comm/launch/locality.h"
#include "framework/ps/client/client.h"
#include "framework/ps/server_list.h"
#include "tools/bench/subject.h"
#include "tools/bench/timed.h"

namespace phalanx::bench {
namespace {

// A sum on servers that starts from zero in every round. Rounds alternate between two tables, as in strategy sync_ps: a
// rank that has finished one round adds to the next sum while others still read the current one.
class SumOnServers {
 public:
  SumOnServers(std::shared_ptr<ps::Client> client, int ranks, std::int64_t elements)
      : client_(std::move(client)), values_(at::full({elements}, 0.0)) {
    for (auto& table : tables_) {
      static std::int64_t made = 0;  // counts the same on all ranks
      table = client_->create({.name = "sum" + std::to_string(made++),
                               .elements = elements,
                               .rules = {"sum_of_clock"},
                               .clients = ranks,
                               .staleness = 0});
    }
  }

  // Sums zeros: the result is the next input.
  void run() { client_->exchange(tables_[rounds_++ % 2], values_, {.rule = 0, .tick = true}).wait(); }

 private:
  std::shared_ptr<ps::Client> client_;
  at::Tensor values_;
  std::array<ps::Table, 2> tables_;
  std::size_t rounds_ = 0;
};

class ServersSubject final : public Subject {
 public:
  explicit ServersSubject(CommunicatorPtr world) : world_(std::move(world)) {
    auto started = ps::start_servers(true, *world_);
    server_ = std::move(started.own);
    client_ = std::make_shared<ps::Client>(ps::ClientOptions{
        .servers = started.all.addresses_for(host_key()), .number = world_->rank(), .secret = started.all.secret});
    world_->barrier().wait();  // no server ends before all ranks have found it
  }

  ~ServersSubject() override { client_.reset(); }

  std::string name() const override { return "servers"; }
  int size() const override { return world_->size(); }
  std::vector<std::string> algorithms(const std::string&) const override { return {"native"}; }

  std::string absent(const Case& what) const override {
    return what.op == "all_reduce" ? "" : "parameter servers are measured only in all_reduce";
  }

  std::unique_ptr<Trial> prepare(const Case& what) override {
    auto sum = std::make_shared<SumOnServers>(client_, size(), sizes_of(what, size()).whole);
    world_->barrier().wait();
    return make_trial([world = world_] { world->barrier().wait(); }, timed([sum] { sum->run(); }));
  }

 private:
  CommunicatorPtr world_;
  std::unique_ptr<ps::Server> server_;
  std::shared_ptr<ps::Client> client_;
};

}  // namespace

std::unique_ptr<Subject> make_servers_subject(CommunicatorPtr world) {
  return std::make_unique<ServersSubject>(std::move(world));
}

}  // namespace phalanx::bench
