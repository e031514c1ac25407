// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/command_line.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tools/bench/operation.h"

namespace phalanx::bench {
namespace {

Options parse(const std::vector<std::string>& words) {
  return parse_options({.name = "bench", .purpose = "", .words = words});
}

std::string problem_of(const std::vector<std::string>& flags) {
  try {
    parse(flags);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(CommandLine, SetsTheOptions) {
  const Options options = parse({"--op=all_reduce,launch", "--backends=shm,mpi", "--against=mpi,torch",
                                 "--bytes=1KB,2MB", "--algorithms=native,ring", "--memory=private", "--ranks=4",
                                 "--bind=core", "--progress=off", "--python=/p", "--json=a.json", "--plot=a.svg"});
  EXPECT_EQ(options.ops, (std::vector<std::string>{"all_reduce", "launch"}));
  EXPECT_EQ(options.against, (std::vector<std::string>{"openmpi", "torch"}));
  EXPECT_EQ(options.bytes, (std::vector<std::int64_t>{1024, 2 << 20}));
  EXPECT_EQ(options.algorithms, (std::vector<std::string>{"native", "ring"}));
  EXPECT_EQ(options.memories, std::vector<std::string>{"private"});
  EXPECT_EQ(options.ranks, 4);
  EXPECT_TRUE(options.bind);
  EXPECT_EQ(options.progress, false);
  EXPECT_EQ(options.plot, "a.svg");
}

TEST(CommandLine, HasDefaults) {
  const Options options = parse({});
  EXPECT_EQ(options.backends, (std::vector<std::string>{"shm", "openmpi"}));
  EXPECT_FALSE(options.progress.has_value());
  EXPECT_FALSE(options.bind);
  EXPECT_EQ(parse({"--op=all"}).ops, operation_names());
}

TEST(CommandLine, NamesPeersWithLaunchersOfTheirOwn) {
  const Options options = parse({"--against=intelmpi,mpich,oneccl,flags"});
  EXPECT_EQ(options.against, (std::vector<std::string>{"intelmpi", "mpich", "oneccl", "flags"}));
  EXPECT_NE(problem_of({"--device=cuda", "--against=mpich"}).find("only on the CPU"), std::string::npos);
}

TEST(CommandLine, SaysWhatIsWrong) {
  EXPECT_EQ(problem_of({"--op=all_reduc"}).substr(0, 31), "--op: \"all_reduc\" is not one of");
  EXPECT_NE(problem_of({"--op=all_reduc"}).find("did you mean \"all_reduce\"?"), std::string::npos);
  EXPECT_EQ(problem_of({"--memory=pinned"}), "--memory: \"pinned\" is not one of registered, private");
  EXPECT_NE(problem_of({"--against=nccl"}).find("mpi, openmpi, gloo, torch, servers, flags, intelmpi, mpich, oneccl"),
            std::string::npos);
  EXPECT_EQ(problem_of({"--bytes="}), "--bytes is empty");
  EXPECT_NE(problem_of({"--bytes=1XB"}).find("1XB"), std::string::npos);
  EXPECT_NE(problem_of({"--bind=socket"}).find("none, core"), std::string::npos);
  EXPECT_NE(problem_of({"--progress=on,off"}).find("expected one of"), std::string::npos);
  EXPECT_NE(problem_of({"--ranks=0"}).find("at least 1"), std::string::npos);
  EXPECT_NE(problem_of({"--budget_ms=0"}).find("more than 0"), std::string::npos);
  EXPECT_NE(problem_of({"--backends=inproc,shm"}).find("inproc"), std::string::npos);
  EXPECT_NE(problem_of({"--backends=inproc", "--against=mpi"}).find("inproc"), std::string::npos);
  EXPECT_NE(problem_of({"--backends=shm,openmpi", "--against=mpi"}).find("name it once"), std::string::npos);
  EXPECT_NE(problem_of({"--plot=a.png"}).find(".svg"), std::string::npos);
  EXPECT_NE(problem_of({"--python=/p"}).find("--against torch"), std::string::npos);
  EXPECT_NE(problem_of({"--device=cuda"}).find("other libraries are measured only on the CPU"), std::string::npos);
  EXPECT_NE(problem_of({"stray"}).find("\"stray\""), std::string::npos);
}

}  // namespace
}  // namespace phalanx::bench
