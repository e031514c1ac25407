// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/describe.h"

#include <gtest/gtest.h>

#include "framework/base/testing/schema.h"

namespace phalanx::config {
namespace {

using config::testing::Models;
using config::testing::Root;
using config::testing::Stages;

TEST(Describe, ShowsTheWholeSchema) {
  Root root;
  EXPECT_EQ(describe(root), R"(KEY            TYPE            DEFAULT  LIMITS              HELP
name           string          run                          of the run
amp            true or false   false                        mixed precision
seed           integer         1                            of all randomness
sizes          list (integer)  [1, 2]   between 1 and 100   of the layers
rates          list (number)   []       at least 0          of the schedule
tags           list (string)   []                           to find the run by
launch:                                                     how ranks are started
  ranks        integer         1        at least 1          number of processes
  with         string          auto     auto, local or mpi  who starts them
optimizer:                                                  what moves the parameters
  lr           number          0.1      above 0             learning rate
  momentum     number          0.9      between 0 and 1     share of the last step
model:         one of          lenet                        the network to train
  name: lenet                                               LeNet-5
    channels   integer         6        at least 1          of the first layer
  name: mlp                                                 multi-layer perceptron
    hidden     integer         128      at least 1          width of the hidden layer
    dropout    number          0        between 0 and 1     share of activations dropped
  name: stack                                               layers on layers
    layers     integer         2                            how many
)");
}

TEST(Describe, ShowsTheSchemaOfAListsSections) {
  Stages root;
  EXPECT_EQ(describe(root), R"(KEY      TYPE     DEFAULT  LIMITS          HELP
stages:  list of  []                       one after the other
  lr     number   0.1      above 0         learning rate
  steps  integer  10       at least 1      how long
  shape  string   flat     flat or linear  of the rate
seed     integer  1                        of all randomness
)");
}

TEST(Describe, ShowsOneSection) {
  Root root;
  EXPECT_EQ(describe(root, "optimizer"), R"(KEY         TYPE    DEFAULT  LIMITS           HELP
optimizer:                                    what moves the parameters
  lr        number  0.1      above 0          learning rate
  momentum  number  0.9      between 0 and 1  share of the last step
)");
  EXPECT_EQ(describe(root, "model.mlp"), R"(KEY        TYPE     DEFAULT  LIMITS           HELP
name: mlp                                     multi-layer perceptron
  hidden   integer  128      at least 1       width of the hidden layer
  dropout  number   0        between 0 and 1  share of activations dropped
)");
  EXPECT_EQ(describe(root, "launch.ranks"), R"(KEY    TYPE     DEFAULT  LIMITS      HELP
ranks  integer  1        at least 1  number of processes
)");
}

TEST(Describe, SuggestsTheSectionThatWasMeant) {
  Root root;
  const auto refused = [&](const std::string& section) {
    try {
      return describe(root, section);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refused("optimiser"), "a config has no section or key \"optimiser\" (did you mean \"optimizer\"?)");
  EXPECT_EQ(refused("mlp"), "a config has no section or key \"mlp\" (did you mean \"model.mlp\"?)");
  EXPECT_EQ(refused("model.dropout"),
            "a config has no section or key \"model.dropout\" (did you mean \"model.mlp.dropout\"?)");
  EXPECT_EQ(refused("zzz"), "a config has no section or key \"zzz\"");
}

struct Verbose {
  std::string backend = "auto";
  Models::Choice model;
  template <class V>
  void visit(V& v) {
    v("backend", backend, "what connects the ranks; auto: shared memory on one host, and a network between several",
      one_of({"auto", "message_passing_interface", "shared_memory", "sockets_and_shared_memory", "threads",
              "threads_and_sockets"}));
    v("model", model, "required");
  }
};

// A terminal, or a window next to another one, has about this width.
TEST(Describe, PutsTheHelpBelowWhereATableWouldBeTooWide) {
  Verbose verbose;
  EXPECT_EQ(describe(verbose), R"(KEY            TYPE     DEFAULT     LIMITS
backend        string   auto
      one of auto, message_passing_interface, shared_memory, sockets_and_shared_memory, threads or
      threads_and_sockets
      what connects the ranks; auto: shared memory on one host, and a network between several
model:         one of   (required)
      required
  name: lenet  LeNet-5
    channels   integer  6           at least 1
          of the first layer
  name: mlp    multi-layer perceptron
    hidden     integer  128         at least 1
          width of the hidden layer
    dropout    number   0           between 0 and 1
          share of activations dropped
  name: stack  layers on layers
    layers     integer  2
          how many
)");
}

TEST(Describe, ChangesNothing) {
  Root root;
  const std::string before = dump(root);
  describe(root);
  EXPECT_EQ(dump(root), before);
}

TEST(Describe, ShowsTheDefaultsOfWhatIsSelected) {
  Root root;
  load_text(root, "model: {channels: 77}", "t.yaml");
  EXPECT_NE(describe(root).find("  77  "), std::string::npos);
}

struct Wide {
  std::string path = "/a/very/long/default/that/would/push/everything/aside";
  Models::Choice model;
  template <class V>
  void visit(V& v) {
    v("path", path, "long");
    v("model", model, "required");
  }
};

TEST(Describe, ALongCellShiftsOnlyItsOwnRow) {
  Wide wide;
  const std::string text = describe(wide);
  EXPECT_NE(
      text.find(
          "path           string   /a/very/long/default/that/would/push/everything/aside                   long\n"),
      text.npos)
      << text;
  EXPECT_NE(text.find("model:         one of   (required)                   required\n"), text.npos) << text;
}

struct Chain;
using Schedules = Registry<int()>;

struct Chain {
  Schedules::Choice next;
  template <class V>
  void visit(V& v) {
    v("next", next, "what follows");
  }
};

TEST(Describe, EndsForASelectionOfItsOwnKind) {
  Schedules::global().add<Chain>("chain", "one after the other", [](const Chain&) { return 0; });
  Chain chain;
  const std::string text = describe(chain);
  EXPECT_NE(text.find("as above"), text.npos) << text;
}

}  // namespace
}  // namespace phalanx::config
