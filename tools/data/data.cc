// SPDX-License-Identifier: Apache-2.0
// Inspects data and prepares it: data stats configs/quickstart.yaml

#include <string>
#include <vector>

#include "engine/experiment/config.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/data/commands.h"

namespace phalanx {
namespace {

struct Options {
  std::string config{};
  std::vector<std::string> overrides{};
  std::int64_t samples = 0;
  std::string html = "samples.html";
  std::string from{};
  std::string text{};
  std::string tokenizer = "bytes";
  double train_share = 0.9;
  std::string to{};
  std::int64_t per_shard = 1000;
  std::int64_t seed = 1;
};

void add_flags(Flags& flags, Options& options) {
  flags.add("config", &options.config,
            "stats, inspect, speed: YAML file of a run, whose dataset to look at; --config may be omitted");
  flags.add_overrides(&options.overrides, std::string("stats, inspect, speed: ") + kOverridesHelp);
  flags.add("samples", &options.samples, "stats, inspect, speed: samples to read; 0: 10000, or 64 to inspect");
  flags.add("html", &options.html, "inspect: page to write");
  flags.add("from", &options.from, "shard: folder of images, laid out as dataset image_folder reads it");
  flags.add("text", &options.text, "tokenize: file of text in UTF-8");
  flags.add("tokenizer", &options.tokenizer,
            "tokenize: bytes, a tokenizer.json, a SentencePiece .model, or a folder with one of these");
  flags.add("train_share", &options.train_share, "tokenize: part of the text to train on; the rest is for testing");
  flags.add("to", &options.to, "shard, tokenize: folder to write to");
  flags.add("per_shard", &options.per_shard, "shard: images in an archive");
  flags.add("seed", &options.seed, "seed of the random numbers");
}

const std::string& given(const std::string& flag, const char* name) {
  if (flag.empty()) throw ConfigError(std::string("--") + name + " is missing");
  return flag;
}

ExperimentConfig config_of(const Options& options) {
  ExperimentConfig config;
  config::load(config, given(options.config, "config"), options.overrides);
  return config;
}

Splits splits(const Options& options) { return config_of(options).dataset.make(); }

std::int64_t samples_or(const Options& options, std::int64_t otherwise) {
  if (options.samples < 0) throw ConfigError("--samples: must be at least 0");
  return options.samples == 0 ? otherwise : options.samples;
}

void shard(const Options& options) {
  if (options.per_shard < 1) throw ConfigError("--per_shard: must be at least 1");
  write_shards(given(options.from, "from"), given(options.to, "to"), options.per_shard, options.seed);
}

void tokenize(const Options& options) {
  if (!(options.train_share > 0 && options.train_share < 1)) {
    throw ConfigError("--train_share: must be between 0 and 1");
  }
  write_tokens(given(options.text, "text"), given(options.tokenizer, "tokenizer"), given(options.to, "to"),
               options.train_share);
}

[[noreturn]] void refuse_commands(const std::vector<std::string>& commands) {
  throw ConfigError(commands.empty() ? "name one command: stats, inspect, speed, shard or tokenize (see --help)"
                                     : "unexpected \"" + commands.back() +
                                           "\": expected one command: stats, inspect, speed, shard or tokenize");
}

int run(const Arguments& arguments) {
  Options options;
  Flags flags(arguments, {"stats    configs/quickstart.yaml", "inspect  configs/quickstart.yaml --html samples.html",
                          "speed    configs/quickstart.yaml --samples 100000", "shard    --from images --to shards",
                          "tokenize --text book.txt --tokenizer gpt2/ --to tokens"});
  add_flags(flags, options);
  auto commands = flags.parse(arguments.words);
  const std::string command = commands.empty() ? "" : commands[0];
  const bool reads_config = command == "stats" || command == "inspect" || command == "speed";
  if (reads_config && commands.size() == 2 && options.config.empty()) {
    options.config = commands[1];
    commands.pop_back();
  }
  if (commands.size() != 1) refuse_commands(commands);
  if (command == "stats") {
    print_statistics(splits(options), samples_or(options, 10'000), options.seed);
  } else if (command == "inspect") {
    write_contact_sheet(splits(options), samples_or(options, 64), options.seed, given(options.html, "html"));
  } else if (command == "speed") {
    print_speed(config_of(options), samples_or(options, 10'000));
  } else if (command == "shard") {
    shard(options);
  } else if (command == "tokenize") {
    tokenize(options);
  } else {
    refuse_commands(commands);
  }
  return kDone;
}

const bool data_registered = register_command({"data", "inspects and prepares data", CommandGroup::kData, run});

}  // namespace
}  // namespace phalanx
