// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <string>

#include "engine/testing/run.h"

namespace phalanx {
namespace {

using testing::complaint;

const std::string kShrink = "launch: {ranks: 4}, faults: {on_lost_rank: shrink}";
const std::string kWithoutCopies = "launch: {ranks: 4}, faults: {on_lost_rank: shrink, copies_every: 0}";
const std::string kPerRank = "launch: {ranks: 4}, faults: {on_lost_rank: shrink, batch: per_rank}, ";
const std::string kReplace = "launch: {ranks: 4}, faults: {on_lost_rank: replace}";

TEST(FaultsCheck, ShrinkIsPossibleWithTheseStrategiesAndBackends) {
  for (const auto* const more :
       {"", ", strategy: all_reduce", ", strategy: overlapped", ", backend: in_memory", ", strategy: sharded",
        ", strategy: {sharded: {stage: 3}}", ", strategy: {all_reduce: {compression: fp16}}",
        ", strategy: ssp, roles: {server: 1}", ", strategy: easgd, roles: {server: 2, replicas: 2}"}) {
    EXPECT_EQ(complaint(kShrink + more), "") << more;
  }
}

TEST(FaultsCheck, NoMoreRanksAreRequiredThanThereAre) {
  EXPECT_EQ(complaint("launch: {ranks: 2}, faults: {min_ranks: 3}"),
            "config: faults.min_ranks: 3 ranks are more than the 2 of launch.ranks; set it to 2 at most");
}

TEST(FaultsCheck, ShrinkSaysWhatItCannotBeCombinedWith) {
  const auto refused = [&](const std::string& more, const std::string& remedy) {
    EXPECT_THAT(complaint(kShrink + ", " + more),
                ::testing::AllOf(::testing::HasSubstr("faults.on_lost_rank: shrink "), ::testing::HasSubstr(remedy)));
  };
  refused("backend: by_messages", "set backend: shm or gloo, or set faults.on_lost_rank: stop");
  refused("backend: inproc, framework: {selection: [{op: all_reduce, backend: in_memory}]}", "remove these rules");
  refused("mesh: {context: 4}", "with mesh.context: 4 all ranks are one replica; set launch.ranks: 8");
  refused("strategy: hogwild", "set strategy: all_reduce, overlapped or sharded");
  refused("strategy: local_sgd", "set strategy: all_reduce, overlapped or sharded");
  refused("strategy: ssp", "set roles.server, or set faults.on_lost_rank: stop");
  refused("roles: {server: 1}, strategy: sync_ps", "set strategy: downpour, ssp, dc_asgd or easgd, or all_reduce");
  refused("roles: {server: 1}, strategy: {easgd: {synchronous: true}}", "whose ranks do not wait for all others");
  refused("roles: {servers_at: ['a:1'], secret_file: s}, strategy: ssp",
          "set roles.server instead of roles.servers_at");
  refused("framework: {record: r}", "remove framework.record");
  refused("framework: {tune: auto}", "set framework.tune: \"off\"");
  refused("framework: {topology: {levels: [host]}}", "remove framework.topology.levels");
  refused("loader: {shares: measured}", "set loader.shares: equal");
}

TEST(FaultsCheck, StateOfOneRankOnlyNeedsCopies) {
  EXPECT_EQ(complaint(kWithoutCopies + ", strategy: overlapped"), "");
  EXPECT_EQ(complaint(kWithoutCopies + ", strategy: sharded"),
            "config: faults.copies_every: 0, but with these settings of strategy sharded each rank has state that no"
            " other rank has, and that is lost with it; set 10, or set faults.on_lost_rank: stop");
}

TEST(FaultsCheck, ServersThatAreRanksHaveReplicasAmongThem) {
  EXPECT_THAT(complaint(kShrink + ", strategy: ssp, roles: {server: 1, replicas: 2}"),
              ::testing::HasSubstr("the number in roles.server is 1"));
  EXPECT_THAT(complaint("launch: {ranks: 4}, strategy: ssp, roles: {server: 2, replicas: 2}"),
              ::testing::HasSubstr("or set faults.on_lost_rank: shrink and roles.server"));
}

TEST(FaultsCheck, ABatchPerRankIsTheSameOnAllRanks) {
  EXPECT_THAT(complaint(kPerRank + "strategy: ssp, roles: {server: 1}"),
              ::testing::HasSubstr("set faults.batch: global"));
  EXPECT_EQ(complaint(kPerRank + "train: {global_batch_size: 32}"), "");
  EXPECT_EQ(complaint(kPerRank + "train: {global_batch_size: 30}"),
            "config: faults.batch: per_rank needs the same batch on each rank, but 4 ranks cannot divide"
            " train.global_batch_size: 30 equally; set it to 32, or set faults.batch: global");
  EXPECT_EQ(complaint(kPerRank + "checkpoint: {resume: auto}, train: {global_batch_size: 30}"), "");
  EXPECT_EQ(complaint(kPerRank + "mesh: {tensor: 2}, train: {global_batch_size: 30}"), "");
  EXPECT_THAT(complaint(kPerRank + "mesh: {tensor: 2}, train: {global_batch_size: 31}"),
              ::testing::HasSubstr("2 groups of ranks with the same samples cannot divide"));
  EXPECT_THAT(complaint(kPerRank + "train: {max_steps: 9}"), ::testing::HasSubstr("set train.epochs instead"));
  EXPECT_THAT(complaint(kPerRank + "determinism: world_size_invariant"),
              ::testing::HasSubstr("faults.batch: per_rank changes the global batch, and with it the results"));
}

TEST(FaultsCheck, AMeshNeedsASecondReplica) {
  const std::string mesh = "faults: {on_lost_rank: shrink}, mesh: {tensor: 2}, launch: {ranks: ";
  EXPECT_EQ(complaint(mesh + "4}"), "");
  EXPECT_EQ(complaint(mesh + "2}"),
            "config: faults.on_lost_rank: shrink goes on with the other replicas, but with mesh.tensor: 2 all ranks are"
            " one replica; set launch.ranks: 4 or a higher multiple of 2, or set faults.on_lost_rank: stop");
  EXPECT_EQ(complaint(mesh + "2}, checkpoint: {resume: auto}"), "");
  EXPECT_EQ(complaint("faults: {on_lost_rank: shrink}, mesh: {pipe: 2}, launch: {ranks: 4}"), "");
  EXPECT_EQ(complaint("faults: {on_lost_rank: shrink}, mesh: {context: 2}, launch: {ranks: 4}"), "");
  EXPECT_THAT(complaint(kWithoutCopies + ", mesh: {tensor: 2}"),
              ::testing::HasSubstr("faults.copies_every: 0, but with this mesh each rank has a part of a replica"));
}

TEST(FaultsCheck, ReplaceNeedsALauncherThatStartsProcesses) {
  EXPECT_EQ(complaint(kReplace + ", strategy: overlapped, backend: by_messages_of_hosts"), "");
  EXPECT_THAT(complaint(kReplace + ", backend: inproc"),
              ::testing::HasSubstr("replace needs ranks that are processes"));
  EXPECT_THAT(complaint(kReplace + ", backend: by_mpi"),
              ::testing::HasSubstr("replace needs a launcher that can start one more rank, which mpirun cannot"));
  EXPECT_EQ(complaint(kReplace + ", strategy: sharded"), "");
  EXPECT_EQ(complaint(kReplace + ", mesh: {tensor: 2}"), "");
  EXPECT_THAT(complaint("launch: {ranks: 4}, faults: {on_lost_rank: replace, replacements: 1}, mesh: {tensor: 2}"),
              ::testing::HasSubstr("faults.replacements: 1, but a replica has 2 ranks, which are lost together"));
  EXPECT_EQ(complaint("launch: {ranks: 4}, faults: {on_lost_rank: replace, batch: per_rank}"), "");
  EXPECT_EQ(complaint("launch: {ranks: 4, hosts: [a, b], with: ssh}, faults: {on_lost_rank: replace}"), "");
  for (const auto* const by_mpirun : {"ranks: 4, hosts: [a, b]", "ranks: 4, with: mpi"}) {
    EXPECT_EQ(
        complaint("launch: {" + std::string(by_mpirun) + "}, faults: {on_lost_rank: replace}"),
        "config: faults.on_lost_rank: replace needs a launcher that can start one more rank, which mpirun cannot; "
        "set launch.with: local, or ssh for several hosts, or srun for those of a Slurm job, or set "
        "faults.on_lost_rank: stop");
  }
  EXPECT_EQ(complaint("launch: {ranks: 4, with: srun}, faults: {on_lost_rank: replace}"), "");
  EXPECT_THAT(complaint(kReplace + ", strategy: hogwild"), ::testing::HasSubstr("faults.on_lost_rank: replace needs"));
}

TEST(FaultsCheck, HostsJoinOnlyWhereMoreRanksFit) {
  const std::string join = "launch: {ranks: 4}, faults: {on_lost_rank: replace, max_ranks: ";
  EXPECT_EQ(complaint(join + "6}"), "");
  EXPECT_EQ(complaint(join + "4}"), "");
  EXPECT_THAT(complaint(join + "3}"),
              ::testing::HasSubstr("faults.max_ranks: 3 ranks are fewer than the 4 of launch.ranks"));
  EXPECT_THAT(complaint(join + "6}, backend: inproc"), ::testing::HasSubstr("set backend: auto, gloo or hybrid"));
  EXPECT_THAT(complaint(join + "6}, train: {global_batch_size: 5}"),
              ::testing::HasSubstr("faults.max_ranks: 6 ranks cannot divide a batch of 5 samples"));
  const std::string in_memory = "framework: {selection: [{op: all_reduce, backend: in_memory}]}";
  EXPECT_EQ(complaint(kReplace + ", " + in_memory), "");
  EXPECT_THAT(complaint(join + "6}, " + in_memory), ::testing::HasSubstr("remove these rules"));
  EXPECT_EQ(complaint(join + "6}, train: {global_batch_size: 5}, mesh: {tensor: 2}"), "");
  EXPECT_EQ(complaint(join + "6, batch: per_rank}, train: {global_batch_size: 4}"), "");
  EXPECT_THAT(complaint("launch: {ranks: 1}, faults: {on_lost_rank: replace, max_ranks: 2}, strategy: single"),
              ::testing::HasSubstr("no rank can join a run by strategy: single"));
  EXPECT_THAT(complaint("launch: {ranks: 4}, faults: {on_lost_rank: shrink, max_ranks: 6}"),
              ::testing::HasSubstr("only with faults.on_lost_rank: replace"));
}

TEST(FaultsCheck, ShardsDivideAmongEachNumberOfRanksThatMayBeLeft) {
  const std::string invariant = ", determinism: world_size_invariant, launch: {ranks: 4, threads: 1}, train: ";
  EXPECT_EQ(complaint("faults: {on_lost_rank: shrink}" + invariant + "{virtual_shards: 24}"), "");
  EXPECT_EQ(
      complaint("faults: {on_lost_rank: shrink}" + invariant + "{virtual_shards: 8}"),
      "config: train.virtual_shards: 8 cannot be divided among each number of ranks from 1 to 4, which may be left"
      " with faults.on_lost_rank: shrink; set it to a multiple of 12");
  EXPECT_THAT(complaint("faults: {on_lost_rank: shrink, min_ranks: 4}" + invariant + "{virtual_shards: 4}"),
              ::testing::HasSubstr("set it to a multiple of 12"));
  EXPECT_THAT(complaint("faults: {on_lost_rank: shrink}, determinism: world_size_invariant,"
                        " launch: {ranks: 11, threads: 1}, train: {virtual_shards: 11}"),
              ::testing::HasSubstr("use fewer ranks, or set determinism: run"));
}

TEST(FaultsCheck, ShrinkNeedsALauncherThatKnowsWhoIsLost) {
  EXPECT_THAT(complaint("launch: {ranks: 4, with: mpi}, faults: {on_lost_rank: shrink}"),
              ::testing::HasSubstr("set launch.with: local"));
  const std::string two_hosts = "faults: {on_lost_rank: shrink}, launch: {ranks: 4, hosts: [a, b]";
  EXPECT_THAT(complaint(two_hosts + "}"), ::testing::HasSubstr("set launch.with: ssh for several hosts"));
  EXPECT_THAT(complaint(two_hosts + ", with: ssh}, backend: in_memory"),
              ::testing::HasSubstr("across hosts; set backend: auto"));
  for (const auto* const backend : {"auto", "in_hosts", "by_messages_of_hosts"}) {
    EXPECT_EQ(complaint(two_hosts + ", with: ssh}", backend), "") << backend;
  }
  const std::string rule = ", framework: {selection: [{op: all_reduce, backend: in_hosts}]}";
  EXPECT_EQ(complaint(two_hosts + ", with: ssh}" + rule), "");
  EXPECT_THAT(complaint(two_hosts + ", with: ssh}" + rule, "by_messages_of_hosts"),
              ::testing::HasSubstr("remove these rules"));
  EXPECT_THAT(complaint(kShrink + rule), ::testing::HasSubstr("remove these rules"));
  EXPECT_EQ(complaint(two_hosts + "}, backend: by_mpi"), "");
  EXPECT_EQ(complaint("launch: {ranks: 4, with: mpi}, backend: by_mpi, faults: {on_lost_rank: shrink}"), "");
  EXPECT_THAT(complaint(two_hosts + "}, backend: by_messages_of_hosts"),
              ::testing::HasSubstr("needs backend: mpi if mpirun starts the ranks"));
}

}  // namespace
}  // namespace phalanx
