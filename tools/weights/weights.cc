// SPDX-License-Identifier: Apache-2.0
// Inspects, converts and compares files of weights: weights list resnet18.pt
#include <gflags/gflags.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/flags/parse_flags.h"
#include "tools/flags/take_overrides.h"
#include "tools/weights/commands.h"

DEFINE_string(config, "", "verify, merge: YAML file of a run with the model of these weights");
DEFINE_string(set, "", "verify, merge: key.path=value, overrides the config file; may be repeated");
DEFINE_string(shard_size, "", "convert: largest size of a file, such as 5GB; empty: one file");
DEFINE_string(dtype, "", "convert: dtype for floating-point numbers: float32, float16, bfloat16 or float64");
DEFINE_string(json, "", "JSON file for the result");

namespace phalanx {
namespace {

constexpr const char* kCommands =
    "list FILE, convert FROM TO, diff A B, verify FILE --config CONFIG or merge FROM TO --config CONFIG";

std::int64_t shard_bytes() {
  if (FLAGS_shard_size.empty()) return 0;
  const auto bytes = parse_bytes(FLAGS_shard_size);
  if (bytes < 1) throw ConfigError("--shard_size: must be at least one byte");
  return bytes;
}

int run(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const auto overrides = take_overrides(words);
  const auto given =
      parse_flags({.purpose = "lists, converts and compares files of weights\n\n"
                              "  weights list    model.safetensors\n"
                              "  weights convert pytorch_model.bin model.safetensors --shard_size 5GB\n"
                              "  weights diff    a.pt b.safetensors\n"
                              "  weights verify  resnet18.pt --config configs/cifar10_resnet18.yaml\n"
                              "  weights merge   run/weights.safetensors all.pt --config run/config.yaml",
                   .files = "tools/weights/"},
                  words);
  if (given.empty()) throw ConfigError(std::string("name one command: ") + kCommands + " (see --help)");
  const std::string& command = given[0];
  const auto files = [&](std::size_t count) {
    if (given.size() == count + 1) return;
    throw ConfigError(command + " takes " + (count == 1 ? "one file" : "two files") + ", but got " +
                      std::to_string(given.size() - 1) + ": " + kCommands);
  };
  bool good = true;
  if (command == "list") {
    files(1);
    list_weights(given[1], FLAGS_json);
  } else if (command == "convert") {
    files(2);
    convert_weights(given[1], given[2], shard_bytes(), FLAGS_dtype, FLAGS_json);
  } else if (command == "diff") {
    files(2);
    good = compare_weights(given[1], given[2], FLAGS_json);
  } else if (command == "verify") {
    files(1);
    if (FLAGS_config.empty()) throw ConfigError("--config is missing: verify FILE --config CONFIG");
    good = verify_weights(given[1], FLAGS_config, overrides, FLAGS_json);
  } else if (command == "merge") {
    files(2);
    if (FLAGS_config.empty()) throw ConfigError("--config is missing: merge FROM TO --config CONFIG");
    merge_adapters(given[1], given[2], FLAGS_config, overrides, FLAGS_json);
  } else {
    throw ConfigError("unexpected \"" + command + "\": the commands are " + kCommands);
  }
  std::fflush(stdout);
  return good ? kDone : kFailed;
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) {
  return phalanx::run_main([&] { return phalanx::run(argc, argv); });
}
