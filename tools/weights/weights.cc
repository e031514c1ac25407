// SPDX-License-Identifier: Apache-2.0
// Inspects, converts and compares files of weights: weights list resnet18.pt

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/weights/commands.h"

namespace phalanx {
namespace {

constexpr const char* kCommands =
    "list FILE, convert FROM TO, diff A B, verify FILE --config CONFIG or merge FROM TO --config CONFIG";

struct Options {
  std::string config{};
  std::vector<std::string> overrides{};
  std::string shard_size{};
  std::string dtype{};
  std::string json{};
};

std::int64_t shard_bytes(const Options& options) {
  if (options.shard_size.empty()) return 0;
  const auto bytes = parse_bytes(options.shard_size);
  if (bytes < 1) throw ConfigError("--shard_size: must be at least one byte");
  return bytes;
}

int run(const Arguments& arguments) {
  Options options;
  Flags flags(arguments, {"list    model.safetensors", "convert pytorch_model.bin model.safetensors --shard_size 5GB",
                          "diff    a.pt b.safetensors", "verify  resnet18.pt --config configs/cifar10_resnet18.yaml",
                          "merge   run/weights.safetensors all.pt --config run/config.yaml"});
  flags.add("config", &options.config, "verify, merge: YAML file of a run with the model of these weights");
  flags.add_overrides(&options.overrides, std::string("verify, merge: ") + kOverridesHelp);
  flags.add("shard_size", &options.shard_size, "convert: largest size of a file, such as 5GB; empty: one file");
  flags.add("dtype", &options.dtype,
            "convert: dtype for floating-point numbers: float32, float16, bfloat16 or float64");
  flags.add("json", &options.json, "JSON file for the result");
  const auto given = flags.parse(arguments.words);
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
    list_weights(given[1], options.json);
  } else if (command == "convert") {
    files(2);
    convert_weights(given[1], given[2], shard_bytes(options), options.dtype, options.json);
  } else if (command == "diff") {
    files(2);
    good = compare_weights(given[1], given[2], options.json);
  } else if (command == "verify") {
    files(1);
    if (options.config.empty()) throw ConfigError("--config is missing: verify FILE --config CONFIG");
    good = verify_weights(given[1], options.config, options.overrides, options.json);
  } else if (command == "merge") {
    files(2);
    if (options.config.empty()) throw ConfigError("--config is missing: merge FROM TO --config CONFIG");
    merge_adapters(given[1], given[2], options.config, options.overrides, options.json);
  } else {
    throw ConfigError("unexpected \"" + command + "\": the commands are " + kCommands);
  }
  std::fflush(stdout);
  return good ? kDone : kFailed;
}

const bool weights_registered =
    register_command({"weights", "lists, converts and compares files of weights", CommandGroup::kModels, run});

}  // namespace
}  // namespace phalanx
