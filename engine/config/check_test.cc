// SPDX-License-Identifier: Apache-2.0
#include "engine/config/check.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "engine/config/experiment_config.h"
#include "engine/testing/run.h"
#include "framework/base/config/no_fields.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "framework/comm/device_kind.h"

namespace phalanx {
namespace {

using testing::complaint;

bool plant(const std::string& name, const BackendTraits& traits) {
  return Backends::global().add<NoFields>(name, "for tests", traits,
                                          [](const NoFields&, const ConnectOptions&) { return CommunicatorPtr(); });
}

// Backends that nothing but this test knows: what a config may do with them follows from their traits.
using Memory = BackendTraits::Memory;
const bool planted =
    plant("by_messages", {}) && plant("by_messages_of_hosts", {.connects_hosts = true, .shrinks = true}) &&
    plant("in_hosts", {.shared = Memory::kWithinHosts, .shrinks = true, .automatic = WorldKind::kHosts}) &&
    plant("in_memory", {.shared = Memory::kAll, .shrinks = true, .automatic = WorldKind::kOneHost}) &&
    plant("threads_too", {.threads = true}) && plant("by_mpi", {.mpi = true, .shrinks = true});

TEST(Check, AcceptsSettingsThatFitTogether) {
  EXPECT_EQ(complaint(""), "");
  EXPECT_EQ(complaint("launch: {ranks: 4}, train: {global_batch_size: 4}"), "");
  EXPECT_EQ(complaint("launch: {ranks: 1}, strategy: single"), "");
  EXPECT_EQ(complaint("launch: {ranks: 2, hosts: [a, b], with: mpi}"), "");
  EXPECT_EQ(complaint("backend: inproc, launch: {ranks: 2}"), "");
}

TEST(Check, AnAverageThatNeverChangesIsRefused) {
  EXPECT_EQ(complaint("train: {ema_decay: 0.999}"), "");
  EXPECT_EQ(complaint("train: {ema_decay: 1}"),
            "config: train.ema_decay: must be below 1: at 1 the average never changes");
  EXPECT_EQ(
      complaint("train: {ema_decay: 0.9}, strategy: hogwild"),
      "config: train.ema_decay: cannot be combined with strategy hogwild, whose ranks would write averages into the"
      " shared parameters");
}

TEST(Check, GoesOnOnlyIfNoRankHasWhatTheOthersLack) {
  const std::string shrink = "launch: {ranks: 4}, faults: {on_lost_rank: shrink}";
  for (const auto* const more :
       {"", ", strategy: all_reduce", ", strategy: overlapped", ", backend: in_memory", ", strategy: sharded",
        ", strategy: {sharded: {stage: 3}}", ", strategy: {all_reduce: {compression: fp16}}",
        ", strategy: ssp, roles: {server: 1}", ", strategy: easgd, roles: {server: 2, replicas: 2}"}) {
    EXPECT_EQ(complaint(shrink + more), "") << more;
  }
  EXPECT_EQ(complaint("launch: {ranks: 2}, faults: {min_ranks: 3}"),
            "config: faults.min_ranks: 3 ranks are more than the 2 of launch.ranks; set it to 2 at most");
  const auto refused = [&](const std::string& more, const std::string& remedy) {
    EXPECT_THAT(complaint(shrink + ", " + more),
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
  const std::string without_copies = "launch: {ranks: 4}, faults: {on_lost_rank: shrink, copies_every: 0}";
  EXPECT_EQ(complaint(without_copies + ", strategy: overlapped"), "");
  EXPECT_EQ(complaint(without_copies + ", strategy: sharded"),
            "config: faults.copies_every: 0, but with these settings of strategy sharded each rank has state that no"
            " other rank has, and that is lost with it; set 10, or set faults.on_lost_rank: stop");
  const std::string per_rank = "launch: {ranks: 4}, faults: {on_lost_rank: shrink, batch: per_rank}, ";
  EXPECT_THAT(complaint(per_rank + "strategy: ssp, roles: {server: 1}"),
              ::testing::HasSubstr("set faults.batch: global"));
  EXPECT_THAT(complaint(shrink + ", strategy: ssp, roles: {server: 1, replicas: 2}"),
              ::testing::HasSubstr("the number in roles.server is 1"));
  EXPECT_THAT(complaint("launch: {ranks: 4}, strategy: ssp, roles: {server: 2, replicas: 2}"),
              ::testing::HasSubstr("or set faults.on_lost_rank: shrink and roles.server"));
  EXPECT_EQ(complaint(per_rank + "train: {global_batch_size: 32}"), "");
  EXPECT_EQ(complaint(per_rank + "train: {global_batch_size: 30}"),
            "config: faults.batch: per_rank needs the same batch on each rank, but 4 ranks cannot divide"
            " train.global_batch_size: 30 equally; set it to 32, or set faults.batch: global");
  EXPECT_EQ(complaint(per_rank + "checkpoint: {resume: auto}, train: {global_batch_size: 30}"), "");
  EXPECT_EQ(complaint(per_rank + "mesh: {tensor: 2}, train: {global_batch_size: 30}"), "");
  EXPECT_THAT(complaint(per_rank + "mesh: {tensor: 2}, train: {global_batch_size: 31}"),
              ::testing::HasSubstr("2 groups of ranks with the same samples cannot divide"));
  EXPECT_THAT(complaint(per_rank + "train: {max_steps: 9}"), ::testing::HasSubstr("set train.epochs instead"));
  EXPECT_THAT(complaint(per_rank + "determinism: world_size_invariant"),
              ::testing::HasSubstr("faults.batch: per_rank changes the global batch, and with it the results"));
  const std::string mesh = "faults: {on_lost_rank: shrink}, mesh: {tensor: 2}, launch: {ranks: ";
  EXPECT_EQ(complaint(mesh + "4}"), "");
  EXPECT_EQ(complaint(mesh + "2}"),
            "config: faults.on_lost_rank: shrink goes on with the other replicas, but with mesh.tensor: 2 all ranks are"
            " one replica; set launch.ranks: 4 or a higher multiple of 2, or set faults.on_lost_rank: stop");
  EXPECT_EQ(complaint(mesh + "2}, checkpoint: {resume: auto}"), "");
  EXPECT_EQ(complaint("faults: {on_lost_rank: shrink}, mesh: {pipe: 2}, launch: {ranks: 4}"), "");
  EXPECT_EQ(complaint("faults: {on_lost_rank: shrink}, mesh: {context: 2}, launch: {ranks: 4}"), "");
  EXPECT_THAT(complaint(without_copies + ", mesh: {tensor: 2}"),
              ::testing::HasSubstr("faults.copies_every: 0, but with this mesh each rank has a part of a replica"));
  const std::string replace = "launch: {ranks: 4}, faults: {on_lost_rank: replace}";
  EXPECT_EQ(complaint(replace + ", strategy: overlapped, backend: by_messages_of_hosts"), "");
  EXPECT_THAT(complaint(replace + ", backend: inproc"), ::testing::HasSubstr("replace needs ranks that are processes"));
  EXPECT_THAT(complaint(replace + ", backend: by_mpi"),
              ::testing::HasSubstr("replace needs a launcher that can start one more rank, which mpirun cannot"));
  EXPECT_EQ(complaint(replace + ", strategy: sharded"), "");
  EXPECT_EQ(complaint(replace + ", mesh: {tensor: 2}"), "");
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
  const std::string join = "launch: {ranks: 4}, faults: {on_lost_rank: replace, max_ranks: ";
  EXPECT_EQ(complaint(join + "6}"), "");
  EXPECT_EQ(complaint(join + "4}"), "");
  EXPECT_THAT(complaint(join + "3}"),
              ::testing::HasSubstr("faults.max_ranks: 3 ranks are fewer than the 4 of launch.ranks"));
  EXPECT_THAT(complaint(join + "6}, backend: inproc"), ::testing::HasSubstr("set backend: auto, gloo or hybrid"));
  EXPECT_THAT(complaint(join + "6}, train: {global_batch_size: 5}"),
              ::testing::HasSubstr("faults.max_ranks: 6 ranks cannot divide a batch of 5 samples"));
  const std::string in_memory = "framework: {selection: [{op: all_reduce, backend: in_memory}]}";
  EXPECT_EQ(complaint(replace + ", " + in_memory), "");
  EXPECT_THAT(complaint(join + "6}, " + in_memory), ::testing::HasSubstr("remove these rules"));
  EXPECT_EQ(complaint(join + "6}, train: {global_batch_size: 5}, mesh: {tensor: 2}"), "");
  EXPECT_EQ(complaint(join + "6, batch: per_rank}, train: {global_batch_size: 4}"), "");
  EXPECT_THAT(complaint("launch: {ranks: 1}, faults: {on_lost_rank: replace, max_ranks: 2}, strategy: single"),
              ::testing::HasSubstr("no rank can join a run by strategy: single"));
  EXPECT_THAT(complaint("launch: {ranks: 4}, faults: {on_lost_rank: shrink, max_ranks: 6}"),
              ::testing::HasSubstr("only with faults.on_lost_rank: replace"));
  EXPECT_THAT(complaint(replace + ", strategy: hogwild"), ::testing::HasSubstr("faults.on_lost_rank: replace needs"));
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
  EXPECT_THAT(complaint(shrink + rule), ::testing::HasSubstr("remove these rules"));
  EXPECT_EQ(complaint(two_hosts + "}, backend: by_mpi"), "");
  EXPECT_EQ(complaint("launch: {ranks: 4, with: mpi}, backend: by_mpi, faults: {on_lost_rank: shrink}"), "");
  EXPECT_THAT(complaint(two_hosts + "}, backend: by_messages_of_hosts"),
              ::testing::HasSubstr("needs backend: mpi if mpirun starts the ranks"));
}

TEST(Check, OnlyWhatComesByOperationsCanBeRecorded) {
  EXPECT_EQ(complaint("launch: {ranks: 2}, framework: {record: r}"), "");
  EXPECT_EQ(complaint("launch: {ranks: 2}, framework: {record: r}, strategy: {sharded: {stage: 3}}"), "");
  EXPECT_EQ(
      complaint("launch: {ranks: 2}, framework: {record: r}, strategy: hogwild"),
      "config: framework.record: strategy hogwild lets ranks write into each other's memory outside of operations,"
      " which a recording cannot see; use another strategy, or remove framework.record");
  EXPECT_THAT(complaint("launch: {ranks: 2}, framework: {record: r}, strategy: {sharded: {one_copy: true}}"),
              ::testing::HasSubstr("framework.record: strategy sharded with one_copy lets ranks write"));
  EXPECT_EQ(complaint("launch: {ranks: 3}, roles: {server: 1}, framework: {record: r}, strategy: ssp"), "");
  EXPECT_THAT(complaint("framework: {record: r, tune: auto}"),
              ::testing::HasSubstr("framework.record: framework.tune"));
  EXPECT_THAT(complaint("framework: {record: r}, launch: {restarts: 1}"),
              ::testing::HasSubstr("framework.record: launch.restarts"));
}

TEST(Check, TheLastStepsOfARecordingBeginAtACheckpoint) {
  EXPECT_EQ(complaint("framework: {record: r, record_last: 4}, checkpoint: {every_steps: 2, keep_last: 5}"), "");
  EXPECT_EQ(complaint("framework: {record: r, record_last: 3}, checkpoint: {every_steps: 2, keep_last: 5}"),
            "config: framework.record_last: the recording begins at a checkpoint, so 3 must be a multiple of"
            " checkpoint.every_steps, which is 2");
  EXPECT_THAT(complaint("framework: {record: r, record_last: 4}, checkpoint: {every_steps: 2, keep_last: 4}"),
              ::testing::HasSubstr("checkpoint.keep_last: must be at least 5"));
  EXPECT_EQ(complaint("framework: {record_last: 4}"),
            "config: framework.record_last: needs framework.record: the folder");
  EXPECT_EQ(complaint("framework: {record_ranks: [0]}"),
            "config: framework.record_ranks: need framework.record: the folder");
}

TEST(Check, LoaderThreadsNeedBatchesToReadAhead) {
  EXPECT_EQ(complaint("loader: {threads: 2, prefetch: 1}"), "");
  EXPECT_EQ(complaint("loader: {threads: 2}"),
            "config: loader.threads: need batches to read ahead, but loader.prefetch is 0; set it to the number of"
            " batches");
}

TEST(Check, OnlyActivationsOfSegmentsOnADeviceAreOffloaded) {
  EXPECT_EQ(complaint("train: {checkpoint_activations: 2, offload_activations: true}"), "");
  EXPECT_EQ(
      complaint("train: {offload_activations: true}"),
      "config: train.offload_activations: needs train.checkpoint_activations: it moves the inputs of its segments;"
      " set it to a number of segments");
  EXPECT_EQ(complaint("train: {checkpoint_activations: 2, offload_activations: true}, device: cpu"),
            "config: train.offload_activations: moves activations from a device to the host, but device is cpu; remove"
            " it");
}

TEST(Check, ALossScaleMustBeAbleToFall) {
  EXPECT_EQ(complaint("train: {loss_scale: {backoff: 0.25}}"), "");
  EXPECT_EQ(complaint("train: {loss_scale: {backoff: 1}}"),
            "config: train.loss_scale.backoff: must be above 0 and below 1");
}

TEST(Check, EarlyStoppingNeedsTestsDuringTraining) {
  const std::string early = "train: {early_stop: {metric: accuracy}}";
  EXPECT_EQ(complaint(early), "");
  EXPECT_EQ(complaint(early + ", evaluate: {every_epochs: 0, every_steps: 5}"), "");
  EXPECT_EQ(complaint(early + ", evaluate: {every_epochs: 0}"),
            "config: train.early_stop: needs tests during training: set evaluate.every_epochs or evaluate.every_steps");
}

TEST(Check, AModelIsRequiredAndTheDatasetHasADefault) {
  try {
    check(ExperimentConfig{});
    FAIL() << "not refused";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "config: model: is missing: name a model (--help_config lists them)");
  }
  EXPECT_EQ(ExperimentConfig{}.dataset.selected(), "digits");
}

TEST(Check, TheNameMustFitIntoAFoldersName) {
  const std::string why = " cannot be part of a folder's name; use 1 to 100 letters, digits, '.', '_' and '-'";
  for (const char* name : {"", "a/b", "a b", "a\tb", "a:b", "..\\x", "r\xc3\xbcn", "$(x)"}) {
    ExperimentConfig config = testing::tiny_config({});
    config.name = name;
    EXPECT_THAT([&] { check(config); }, ::testing::ThrowsMessage<ConfigError>(::testing::EndsWith(why))) << name;
  }
  EXPECT_EQ(complaint("name: a/b"), "config: name: \"a/b\"" + why);
  EXPECT_EQ(complaint("name: A-z_0.9"), "");
  EXPECT_EQ(complaint("name: " + std::string(100, 'a')), "");
  EXPECT_THAT(complaint("name: " + std::string(101, 'a')), ::testing::EndsWith(why));
}

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

TEST(Check, SingleTrainsOnOneRank) {
  EXPECT_EQ(complaint("launch: {ranks: 2}, strategy: single"),
            "config: strategy: single trains on one rank, but launch.ranks is 2");
}

TEST(Check, StrategiesThatShareMemoryNeedABackendThatSharesIt) {
  EXPECT_EQ(complaint("launch: {ranks: 2}, strategy: hogwild", "by_messages"),
            "config: strategy: hogwild needs ranks that share memory, but the ranks of backend by_messages do not; use "
            "backend: in_memory or inproc");
  EXPECT_EQ(complaint("launch: {ranks: 2}, strategy: {name: sharded, one_copy: true}", "by_messages"),
            "config: strategy.one_copy: needs ranks that share memory, but the ranks of backend by_messages do not; use"
            " backend: in_memory or inproc");
  EXPECT_EQ(
      complaint("launch: {ranks: 2}, strategy: {intra: {sharded: {one_copy: true}}}", "by_messages"),
      "config: strategy.intra.one_copy: needs ranks that share memory, but the ranks of backend by_messages do not;"
      " use backend: in_hosts or in_memory or inproc");
  EXPECT_EQ(
      complaint("launch: {ranks: 2, hosts: [a, b]}, strategy: hogwild"),
      "config: strategy: hogwild needs ranks that share memory, but launch.hosts names 2 hosts; use one of them, or"
      " another strategy");
  EXPECT_EQ(complaint("launch: {ranks: 2}, strategy: hogwild", "in_memory"), "");
  EXPECT_EQ(complaint("launch: {ranks: 2, hosts: [a]}, strategy: hogwild"), "");
  EXPECT_EQ(complaint("launch: {ranks: 2}, strategy: sharded", "by_messages"), "");
  EXPECT_EQ(complaint("launch: {ranks: 2}, strategy: {intra: {sharded: {one_copy: true}}}", "in_hosts"), "");
  EXPECT_EQ(complaint("launch: {ranks: 1}, strategy: hogwild", "by_messages"), "");
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

TEST(Check, AProfileWindowMustBeginBeforeItEnds) {
  EXPECT_EQ(complaint("watch: {profile: {from: 3, to: 3}}"), "");
  EXPECT_EQ(complaint("watch: {profile: {from: 3, to: 2}}"),
            "config: watch.profile: a window from step 3 to 2 is empty; steps are numbered from 1");
  EXPECT_EQ(complaint("watch: {profile: {to: 2}}"),
            "config: watch.profile: a window from step 0 to 2 is empty; steps are numbered from 1");
}

TEST(Check, AProfileWindowWithAllOperatorsMustBeShort) {
  EXPECT_EQ(complaint("watch: {profile: {from: 5, to: 1004}}"), "");
  EXPECT_EQ(complaint("watch: {profile: {from: 1, to: 100000, operators: false}}"), "");
  EXPECT_EQ(complaint("watch: {profile: {from: 5, to: 1005}}"),
            "config: watch.profile: a window of 1001 steps with all operators would fill the memory; use 1000 at most,"
            " or set operators: false");
}

TEST(Check, GradientSumsNeedGradientsThatAreReduced) {
  EXPECT_EQ(complaint("train: {gradients: sum}"), "");
  EXPECT_EQ(complaint("train: {gradients: sum}, strategy: sharded"), "");
  EXPECT_EQ(complaint("train: {gradients: sum}, strategy: gossip"),
            "config: train.gradients: sum needs gradients that are reduced in every step, which gossip does not do;"
            " use one of all_reduce, auto, levels, overlapped, sharded, single, sync_ps");
  EXPECT_EQ(complaint("train: {gradients: sum}, strategy: {intra: sharded, inter: all_reduce}"), "");
  EXPECT_THAT(complaint("train: {gradients: sum}, strategy: {intra: sharded, inter: local_sgd}"),
              ::testing::HasSubstr("which levels does not do"));
  EXPECT_THAT(complaint("train: {gradients: sum}, launch: {threads: 1}, determinism: world_size_invariant"),
              ::testing::HasSubstr("train.gradients: must be mean"));
}

TEST(Check, RanksHaveNoOptimizerIfServersUpdateTheParameters) {
  const std::string servers = "strategy: {ssp: {server_optimizer: adam}}";
  EXPECT_EQ(complaint(servers), "");
  EXPECT_EQ(complaint("strategy: ssp, optimizer: adam"), "");
  EXPECT_THAT(complaint(servers + ", optimizer: adam"), ::testing::HasSubstr("optimizer: remove it"));
  EXPECT_THAT(complaint("strategy: dc_asgd, optimizer: {name: sgd, momentum: 0.9}"),
              ::testing::HasSubstr("optimizer: remove it"));
  EXPECT_THAT(complaint(servers + ", parameter_groups: [{match: bias}]"),
              ::testing::HasSubstr("parameter_groups: servers that"));
}

TEST(Check, Fp16RefusesCompressionThatWouldKeepAnOverflow) {
  const std::string refused =
      "config: train.precision: fp16 cannot be combined with compressed gradients, whose residual would keep an "
      "overflow forever; use bf16, or no compression";
  EXPECT_EQ(complaint("train: {precision: fp16}, strategy: {name: overlapped, compression: bf16}"), refused);
  EXPECT_EQ(complaint("train: {precision: fp16}, strategy: {intra: sharded, inter: {all_reduce: {compression: bf16}}}"),
            refused);
  EXPECT_EQ(complaint("train: {precision: fp16}, strategy: {local_sgd: {warmup_steps: 9, warmup_compression: int8}}"),
            refused);
  EXPECT_EQ(complaint("train: {precision: fp16}, strategy: {local_sgd: {warmup_steps: 9, compression: int8}}"), "");
  EXPECT_EQ(complaint("train: {precision: fp16}, strategy: overlapped"), "");
  EXPECT_EQ(complaint("train: {precision: bf16}, strategy: {name: overlapped, compression: bf16}"), "");
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

TEST(Check, BucketBytesMustBeASize) {
  EXPECT_EQ(complaint("framework: {bucket_bytes: 64KB}"), "");
  EXPECT_EQ(complaint("framework: {bucket_bytes: 0}"), "config: framework.bucket_bytes: must be above 0");
  EXPECT_NE(complaint("framework: {bucket_bytes: lots}").find("config: framework.bucket_bytes: "), std::string::npos);
  EXPECT_EQ(complaint("framework: {bucket_bytes: auto}"), "");
  EXPECT_EQ(complaint("framework: {bucket_bytes: default}"), "");
  EXPECT_THAT(complaint("framework: {bucket_bytes: Auto}"), ::testing::EndsWith("(did you mean \"auto\"?)"));
  EXPECT_THAT(complaint("framework: {bucket_bytes: auto}, launch: {threads: 1}, determinism: world_size_invariant"),
              ::testing::HasSubstr("config: framework.bucket_bytes: auto depends on measurements"));
}

TEST(Check, MistakesInTheOptimizerAreFoundBeforeTheRun) {
  EXPECT_EQ(complaint("optimizer: {name: sgd, nesterov: true}"),
            "config: optimizer: nesterov needs a momentum above 0 and no dampening");
}

TEST(Check, AnInvalidExpressionOfAGroupIsNamed) {
  EXPECT_EQ(complaint("parameter_groups: [{match: bias}]"), "");
  const std::string wrong = complaint("parameter_groups: [{match: bias}, {match: '('}], turns: {a: {optimizer: sgd}}");
  EXPECT_THAT(wrong, ::testing::StartsWith("config: parameter_groups[1].match: \"(\" is not a regular expression: "));
  EXPECT_THAT(wrong, ::testing::Not(::testing::HasSubstr("\n"))) << "the problem is reported once";
}

TEST(Check, ExpectationsNeedBoundsThatCanBeMet) {
  EXPECT_EQ(complaint("expect: {test: {accuracy: {}}}"), "config: expect.test.accuracy: needs a min, a max or both");
  EXPECT_EQ(complaint("expect: {train: {loss: {min: 2, max: 1}}}"),
            "config: expect.train.loss: its min is above its max, so no value is within both");
  EXPECT_EQ(complaint("expect: {validation: {loss: {min: 1, max: 1}}}"), "");
  EXPECT_EQ(complaint("expect: {test: {accuracy: {min: 2}}}"),
            "config: expect.test.accuracy: cannot be met: it is always between 0 and 1");
  EXPECT_EQ(complaint("expect: {validation: {auc: {max: -0.5}}}"),
            "config: expect.validation.auc: cannot be met: it is always between 0 and 1");
  EXPECT_EQ(complaint("expect: {test: {accuracy: {min: 1}, loss: {min: 2}}}"), "");
}

TEST(Check, OptimizersOfTurnsAreTriedBeforeTheRun) {
  EXPECT_EQ(complaint("turns: {critic: {optimizer: {name: sgd, nesterov: true}}}"),
            "config: turns.critic.optimizer: nesterov needs a momentum above 0 and no dampening");
}

class MissingKind final : public DeviceKind {
 public:
  c10::DeviceType type() const override { return c10::kMeta; }
  std::string missing() const override { return "there is none; use device: cpu"; }
  int count() const override { return 0; }
  CommunicatorPtr connect(CommunicatorPtr host, c10::Device, Seconds) const override { return host; }
};

const bool check_test_registered = DeviceKinds::global().add<NoFields>(
    "missing", "for tests",
    [](const NoFields&) -> std::shared_ptr<const DeviceKind> { return std::make_shared<MissingKind>(); });

TEST(Check, AMissingDeviceIsRefusedUnlessDeviceIsAuto) {
  EXPECT_EQ(complaint("device: missing"), "config: device: missing: there is none; use device: cpu");
  EXPECT_EQ(complaint("device: cpu"), "");
  EXPECT_EQ(complaint("device: auto"), "");
}

TEST(Check, ARecordedStepCannotCommunicate) {
  EXPECT_EQ(complaint("device: cpu, train: {cuda_graph: true}"),
            "config: device: must be one that records graphs, such as cuda, with train.cuda_graph");
  EXPECT_EQ(
      complaint("train: {cuda_graph: true, accumulate: 2}"),
      "config: train.accumulate: must be 1, since the parts of a batch differ from each other, with train.cuda_graph");
  EXPECT_EQ(
      complaint("launch: {ranks: 2}, strategy: all_reduce, mesh: {tensor: 2}, train: {cuda_graph: true}"),
      "config: mesh: has an axis whose ranks communicate within the step: only data can be used with train.cuda_graph");
  EXPECT_EQ(complaint("launch: {ranks: 2}, strategy: all_reduce, train: {cuda_graph: true}"), "");
}

TEST(Check, ResidentSamplesAreNotGatheredAhead) {
  EXPECT_EQ(complaint("loader: {resident: true, prefetch: 2}"),
            "config: loader.prefetch: gathers batches on the CPU, and must be 0 with loader.resident");
}

TEST(Check, ListsEveryProblemAtOnce) {
  EXPECT_EQ(complaint("name: a/b, launch: {ranks: 2}, strategy: single, train: {global_batch_size: 1}"),
            "config: name: \"a/b\" cannot be part of a folder's name; use 1 to 100 letters, digits, '.', '_' and '-'\n"
            "config: train.global_batch_size: 1 samples cannot be divided among launch.ranks: 2\n"
            "config: strategy: single trains on one rank, but launch.ranks is 2");
}

TEST(Check, PartsOfAScheduleMustFitTogether) {
  EXPECT_EQ(complaint("schedule: {name: multi_step, at: [20, 10]}"),
            "config: schedule: the steps of multi_step's `at` must be in order");
}

}  // namespace
}  // namespace phalanx
