// Embeddings of a billion possible keys on two servers, of which only those exist that were used.
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "framework/ps/server/server.h"
#include "framework/ps/sparse/sparse_cache.h"

using namespace phalanx;

int main() {
  const std::string secret = "known to servers and clients alone";
  const ps::Server first({.listen = {"127.0.0.1:0"}, .secret = secret});
  const ps::Server second({.listen = {"127.0.0.1:0"}, .secret = secret});
  ps::Client client({.servers = {first.addresses(), second.addresses()}, .number = 0, .secret = secret});

  ps::SparseTable table(client, {.name = "users",
                                 .rules = {"{name: adagrad, rowwise: true}"},
                                 .dim = 16,
                                 .sparse = {.keys = 1'000'000'000, .capacity = 1'000'000, .initial = "normal"}});
  const at::Tensor keys = at::tensor(std::vector<std::int64_t>{7, 999'999'999, 7});
  const at::Tensor before = table.pull(keys);  // [3, 16]
  table.push(keys, at::ones_like(before), {.scale = 0.1})
      .wait();  // gradients of key 7 are summed; scale: learning rate

  ps::CachedSparseTable cached(table, {.capacity = 10'000, .staleness = 4});
  cached.prefetch(keys);  // goes on while you do something else
  const at::Tensor after = cached.pull(keys);
  cached.push(keys, at::ones_like(after), {.scale = 0.1, .tick = true});  // stays here for up to 4 clocks
  cached.flush();
  std::cout << (before - after).max().item<float>() << "\n";  // 0.1: the first step of Adagrad
  return (before - after).sub(0.1).abs().max().item<float>() < 1e-5 ? 0 : 1;
}
