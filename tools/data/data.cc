// SPDX-License-Identifier: Apache-2.0
// Inspects data and prepares it: data stats --config configs/quickstart.yaml
#include <gflags/gflags.h>

#include <string>
#include <vector>

#include "engine/experiment/config.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/data/commands.h"
#include "tools/flags/parse_flags.h"
#include "tools/flags/take_overrides.h"

DEFINE_string(config, "", "stats, inspect, speed: YAML file of a run, whose dataset to look at");
DEFINE_string(set, "", "stats, inspect, speed: key.path=value, overrides the config file; may be repeated");
DEFINE_int64(samples, 0, "stats, inspect, speed: samples to read; 0: 10000, or 64 to inspect");
DEFINE_string(html, "samples.html", "inspect: page to write");
DEFINE_string(from, "", "shard: folder of images, laid out as dataset image_folder reads it");
DEFINE_string(text, "", "tokenize: file of text in UTF-8");
DEFINE_string(tokenizer, "bytes",
              "tokenize: bytes, a tokenizer.json, a SentencePiece .model, or a folder with one of these");
DEFINE_double(train_share, 0.9, "tokenize: part of the text to train on; the rest is for testing");
DEFINE_string(to, "", "shard, tokenize: folder to write to");
DEFINE_int64(per_shard, 1000, "shard: images in an archive");
DEFINE_int64(seed, 1, "seed of the random numbers");

namespace phalanx {
namespace {

const std::string& given(const std::string& flag, const char* name) {
  if (flag.empty()) throw ConfigError(std::string("--") + name + " is missing");
  return flag;
}

ExperimentConfig config_of(const std::vector<std::string>& overrides) {
  ExperimentConfig config;
  config::load(config, given(FLAGS_config, "config"), overrides);
  return config;
}

Splits splits(const std::vector<std::string>& overrides) { return config_of(overrides).dataset.make(); }

std::int64_t samples_or(std::int64_t otherwise) {
  if (FLAGS_samples < 0) throw ConfigError("--samples: must be at least 0");
  return FLAGS_samples == 0 ? otherwise : FLAGS_samples;
}

int run(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const auto overrides = take_overrides(words);
  const auto commands = parse_flags({.purpose = "inspects and prepares data\n\n"
                                                "  data stats    --config configs/quickstart.yaml\n"
                                                "  data inspect  --config configs/quickstart.yaml --html samples.html\n"
                                                "  data speed    --config configs/quickstart.yaml --samples 100000\n"
                                                "  data shard    --from images --to shards\n"
                                                "  data tokenize --text book.txt --tokenizer gpt2/ --to tokens",
                                     .files = "tools/data/"},
                                    words);
  const std::string command = commands.size() == 1 ? commands[0] : "";
  if (command == "stats") {
    print_statistics(splits(overrides), samples_or(10'000), FLAGS_seed);
  } else if (command == "inspect") {
    write_contact_sheet(splits(overrides), samples_or(64), FLAGS_seed, given(FLAGS_html, "html"));
  } else if (command == "speed") {
    print_speed(config_of(overrides), samples_or(10'000));
  } else if (command == "shard") {
    if (FLAGS_per_shard < 1) throw ConfigError("--per_shard: must be at least 1");
    write_shards(given(FLAGS_from, "from"), given(FLAGS_to, "to"), FLAGS_per_shard, FLAGS_seed);
  } else if (command == "tokenize") {
    if (!(FLAGS_train_share > 0 && FLAGS_train_share < 1)) throw ConfigError("--train_share: must be between 0 and 1");
    const bool file = FLAGS_tokenizer != "bytes";
    write_tokens(given(FLAGS_text, "text"), file ? given(FLAGS_tokenizer, "tokenizer") : FLAGS_tokenizer,
                 given(FLAGS_to, "to"), FLAGS_train_share);
  } else {
    throw ConfigError(commands.empty() ? "name one command: stats, inspect, speed, shard or tokenize (see --help)"
                                       : "unexpected \"" + commands[commands.size() > 1 ? 1 : 0] +
                                             "\": expected one command: stats, inspect, speed, shard or tokenize");
  }
  return kDone;
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) {
  return phalanx::run_main([&] { return phalanx::run(argc, argv); });
}
