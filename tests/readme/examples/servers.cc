// Two servers and a client, all in this program: they could be anywhere.
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <iostream>

#include "framework/ps/client/client.h"
#include "framework/ps/server/server.h"

using namespace phalanx;

int main() {
  const std::string secret = "known to servers and clients alone";
  const ps::Server first({.listen = {"127.0.0.1:0"}, .secret = secret});  // port 0: any that is free
  const ps::Server second({.listen = {"127.0.0.1:0"}, .secret = secret});

  ps::Client client({.servers = {first.addresses(), second.addresses()}, .number = 0, .secret = secret});
  ps::Table table = client.create({.name = "w", .elements = 1000, .rules = {"copy", "{name: add, factor: 0.5}"}});
  client.push(table, at::full({1000}, 3.0), {.rule = 1}).wait();

  at::Tensor values = at::zeros({1000});
  Work read = client.pull(table, values);  // goes on while you do something else
  read.wait();
  std::cout << values[999].item<float>() << "\n";  // 1.5
  return values[999].item<float>() == 1.5F ? 0 : 1;
}
