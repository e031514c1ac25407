// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/config/topology_config.h"
#include "framework/base/config/visitor.h"
#include "framework/collectives/selection/rule.h"

namespace phalanx {

/// Section `framework` of a config: how ranks communicate.
struct FrameworkConfig {
  double timeout = 600;
  double warn_after = 20;
  std::string bucket_bytes = "default";
  std::string progress_thread = "auto";
  std::string interface;
  bool check_collectives = false;
  bool checksums = false;
  std::vector<SelectionRule> selection;
  std::string selection_file;
  std::string tune = "off";
  TopologyConfig topology;
  std::string record;
  std::int64_t record_last = 0;
  std::vector<std::int64_t> record_ranks;

  template <class V>
  void visit(V& v) {
    v("timeout", timeout, "seconds that an operation waits for a peer", config::above(0));
    v("warn_after", warn_after, "seconds after which the console names the ranks that others wait for; 0: never",
      config::at_least(0));
    v("bucket_bytes", bucket_bytes,
      "size of gradient buckets, such as 4MB; default: 25 MB, or less where they are sent to other hosts during "
      "backward; auto: derived from a measured all-reduce");
    v("progress_thread", progress_thread, "thread that communicates while the rank computes; auto: if a core is free",
      config::one_of({"auto", "on", "off"}));
    v("interface", interface,
      "network interface by which ranks of other hosts reach this one: its name, an address or a network such as "
      "10.0.0.0/24, or several of them, of which the first that a host has is used; empty: PHALANX_INTERFACE, or the "
      "one of the route to rank 0");
    v("check_collectives", check_collectives, "compare the ranks' calls before each operation");
    v("checksums", checksums,
      "send a checksum with each message and each checkpoint that waits in memory, and end the run if it does not "
      "match");
    v("selection", selection, "rules that choose algorithms; the first that matches applies");
    v("selection_file", selection_file,
      "file of further rules, which are tried after `selection`, as written by //tools:tune");
    v("tune", tune,
      "choose algorithms by measurement; auto: after the second step, for the operations of these steps; results are "
      "kept in the user's cache",
      config::one_of({"off", "auto"}));
    v("topology", topology, "which ranks are near each other");
    v("record", record,
      "folder in which each rank records what it receives, so that //tools:replay can run it alone; empty: none");
    v("record_last", record_last,
      "keep the recording of the last n steps only, beginning at a checkpoint; 0: of the whole run",
      config::at_least(0));
    v("record_ranks", record_ranks, "ranks that record; empty: all", config::at_least(0));
  }
};

}  // namespace phalanx
