// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <string>

#include "engine/testing/run.h"

namespace phalanx {
namespace {

using testing::complaint;

TEST(Check, HostsAreNamesWithOrWithoutSlots) {
  const auto with_host = [](const std::string& host) {
    return complaint("launch: {with: mpi, hosts: [one, \"" + host + "\"]}");
  };
  for (const char* host : {"node1", "node1:4", "10.0.0.1:2", "a.b-c.d_e", "n:4096"}) EXPECT_EQ(with_host(host), "");
  for (const char* host : {"a:-1", "a b", "", "-x", "a:0", "a:", ":2", "a:2:3", "a:+1", "a:01", "a:4097", "a,b", "a/b",
                           "a:99999999999999999999"}) {
    EXPECT_EQ(with_host(host), "config: launch.hosts[1]: \"" + std::string(host) +
                                   "\" is not a host; expected a name, or name:slots with 1 to 4096 slots");
  }
}

TEST(Check, EveryRankNeedsASample) {
  EXPECT_EQ(complaint("launch: {ranks: 5}, train: {global_batch_size: 4}"),
            "config: train.global_batch_size: 4 samples cannot be divided among launch.ranks: 5");
}

TEST(Check, EveryReplicaInAThreadNeedsASample) {
  EXPECT_EQ(complaint("launch: {ranks: 2}, train: {global_batch_size: 7, data_parallel: 4}"), "");
  EXPECT_EQ(
      complaint("launch: {ranks: 2}, train: {global_batch_size: 7, data_parallel: 1024}"),
      "config: train.data_parallel: 1024 replicas are more than the 4 samples of a batch that a rank has; use 4 at"
      " most");
}

TEST(Check, EveryMicroBatchNeedsASample) {
  const std::string pipe = "launch: {ranks: 4}, mesh: {pipe: 2}, train: {global_batch_size: 20}, pipeline: ";
  EXPECT_EQ(complaint(pipe + "{micro_batches: 10}"), "");
  EXPECT_EQ(complaint(pipe + "{micro_batches: 65536}"),
            "config: pipeline.micro_batches: 65536 are more than the 10 samples of a batch that each pipeline has");
}

TEST(Check, ForksAndThreadsCannotRunOnOtherHosts) {
  EXPECT_EQ(complaint("launch: {ranks: 2, hosts: [a], with: local}"),
            "config: launch.with: local starts ranks on this host only, but launch.hosts names others; use mpi or ssh");
  EXPECT_EQ(complaint("launch: {ranks: 2, with: mpi}, backend: inproc"),
            "config: launch.with: mpi starts processes, but the ranks of backend inproc are threads");
  EXPECT_EQ(complaint("launch: {ranks: 2, hosts: [a]}, backend: inproc"),
            "config: backend: the ranks of inproc are threads of one process, but launch.hosts names hosts");
  EXPECT_EQ(complaint("launch: {ranks: 2, hosts: [a]}", "threads_too"),
            "config: backend: the ranks of threads_too are threads of one process, but launch.hosts names hosts");
}

TEST(Check, OptionsOfMpirunMustNotRepeatOtherKeys) {
  EXPECT_EQ(complaint("launch: {mpirun_options: [--mca, pml, ucx], pass_variables: [RACK, NCCL_*]}"), "");
  EXPECT_EQ(complaint("launch: {mpirun_options: [--report-bindings, -np, 3]}"),
            "config: launch.mpirun_options[1]: -np is set by launch.ranks");
  EXPECT_EQ(complaint("launch: {mpirun_options: [--hostfile=hosts]}"),
            "config: launch.mpirun_options[0]: --hostfile=hosts is set by launch.hosts");
  EXPECT_EQ(complaint("launch: {mpirun_options: [-hosts, a]}"),
            "config: launch.mpirun_options[0]: -hosts is set by launch.hosts");
  EXPECT_EQ(complaint("launch: {mpirun_options: [program]}"),
            "config: launch.mpirun_options[0]: \"program\" is not an option: mpirun would start it as the program");
  EXPECT_EQ(complaint("launch: {bind_to: core, mpirun_options: [--bind-to, core]}"),
            "config: launch.mpirun_options[0]: launch.bind_to: core binds the ranks; use one of the two");
  EXPECT_EQ(complaint("launch: {with: local, mpirun_options: [--tag-output]}"),
            "config: launch.mpirun_options: launch.with: local starts ranks without mpirun; use mpi");
}

TEST(Check, SrunNeedsNoHostsAndNoMpi) {
  EXPECT_EQ(complaint("launch: {ranks: 2, with: srun}"), "");
  EXPECT_THAT(complaint("launch: {ranks: 2, with: srun}", "by_mpi"),
              ::testing::HasSubstr("srun starts ranks without MPI, which backend by_mpi needs"));
  EXPECT_THAT(complaint("launch: {ranks: 2, with: srun}", "inproc"),
              ::testing::HasSubstr("srun starts processes, but the ranks of backend inproc are threads"));
  EXPECT_THAT(complaint("launch: {ranks: 2, with: srun}, faults: {on_lost_rank: shrink}", "in_memory"),
              ::testing::HasSubstr("across hosts; set backend: auto"));
  EXPECT_THAT(complaint("launch: {ranks: 2, with: srun, mpirun_options: [--tag-output]}"),
              ::testing::HasSubstr("launch.with: srun starts ranks without mpirun"));
}

TEST(Check, SshNeedsHostsAndNoMpi) {
  EXPECT_EQ(complaint("launch: {ranks: 2, with: ssh, hosts: [a, b]}"), "");
  EXPECT_THAT(complaint("launch: {ranks: 2, with: ssh}"), ::testing::HasSubstr("launch.hosts, which names none"));
  EXPECT_THAT(complaint("launch: {ranks: 2, with: ssh, hosts: [a, b]}", "by_mpi"),
              ::testing::HasSubstr("ssh starts ranks without MPI, which backend by_mpi needs"));
  EXPECT_THAT(complaint("launch: {ranks: 2, with: ssh, hosts: [a, b]},"
                        " framework: {selection: [{op: reduce}, {op: reduce, backend: by_mpi}]}"),
              ::testing::HasSubstr("which backend by_mpi of framework.selection needs; use mpi, or remove this rule"));
  EXPECT_THAT(complaint("launch: {ranks: 2, with: ssh, hosts: [a], mpirun_options: [--tag-output]}"),
              ::testing::HasSubstr("launch.with: ssh starts ranks without mpirun"));
}

TEST(Check, VariablesToPassOnHaveNames) {
  for (const std::string wrong : {"A=1", "7UP", "\"*\"", "A B"}) {
    EXPECT_THAT(complaint("launch: {pass_variables: [" + wrong + "]}"),
                ::testing::HasSubstr("config: launch.pass_variables[0]: "))
        << wrong;
  }
}

}  // namespace
}  // namespace phalanx
