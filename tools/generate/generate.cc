// SPDX-License-Identifier: Apache-2.0
// Continues a text with a trained language model: generate runs/NAME --prompt "To be"
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/text/tokenizer.h"
#include "datasets/text/unicode.h"
#include "engine/build/load_model.h"
#include "engine/experiment/experiment.h"
#include "engine/generation/text_generator.h"
#include "engine/generation/token_sampler.h"
#include "framework/base/error.h"
#include "framework/base/printable.h"
#include "framework/kernels/kernels.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/config/load_checked.h"
#include "tools/config/saved_run.h"
#include "tools/config/use_cpu.h"

namespace phalanx {
namespace {

struct Options {
  SavedRunFlags saved{};
  std::string prompt = "\n";
  std::int64_t tokens = 200;
  SamplingOptions sampling{};
  bool cache = true;
};

Options parse(const Arguments& arguments) {
  Options options;
  Flags flags(arguments, {"runs/NAME --prompt \"To be\" --temperature 0.8",
                          "--weights weights.safetensors --config configs/shakespeare_gpt_tp2.yaml"});
  options.saved.add_to(flags);
  flags.add("prompt", &options.prompt,
            "text to continue; if the dataset's tokens are not text, their numbers: \"3 1 4\"");
  flags.add("tokens", &options.tokens, "how many tokens to add");
  flags.add("temperature", &options.sampling.temperature,
            "scores are divided by it: below 1 favors likely tokens, 0 always takes the likeliest");
  flags.add("top_k", &options.sampling.top_k, "draw from this many of the likeliest tokens; 0: from all");
  flags.add("top_p", &options.sampling.top_p,
            "draw from the smallest set of likeliest tokens whose probabilities add up to this");
  flags.add("seed", &options.sampling.seed, "seed of the random numbers");
  flags.add("cache", &options.cache, "keep the keys and values of tokens that the model has seen");
  auto others = flags.parse(arguments.words);
  take_positional(others, options.saved.run);
  refuse(others);
  if (options.tokens < 1) throw ConfigError("--tokens: must be at least 1");
  return options;
}

// A tokenizer for tokens that do not represent text: numbers separated by spaces.
class Numbers final : public Tokenizer {
 public:
  explicit Numbers(std::int64_t size) : size_(size) {}

  std::int64_t size() const override { return size_; }

  std::vector<std::int64_t> encode(std::string_view text) const override {
    std::vector<std::int64_t> tokens;
    std::istringstream words{std::string(text)};
    for (std::string word; words >> word;) {
      std::int64_t token = -1;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), token);
      if (error != std::errc() || end != word.data() + word.size() || token < 0 || token >= size_) {
        throw ConfigError("\"" + word + "\" is not a token: the dataset's tokens are not text, but the numbers 0 to " +
                          std::to_string(size_ - 1));
      }
      tokens.push_back(token);
    }
    return tokens;
  }

  std::string decode(std::span<const std::int64_t> tokens) const override {
    std::string text;
    for (const auto token : tokens) text += " " + std::to_string(token);
    return text;
  }

 private:
  std::int64_t size_;
};

std::vector<std::int64_t> prompt_of(const Tokenizer& tokenizer, const std::string& text) {
  try {
    auto tokens = tokenizer.encode(text);
    if (!tokens.empty()) return tokens;
  } catch (const DataError& error) {
    throw ConfigError(std::string("--prompt: ") + error.what());
  } catch (const ConfigError& error) {
    throw ConfigError(std::string("--prompt: ") + error.what());
  }
  throw ConfigError("--prompt: is empty, but a model needs at least one token to continue");
}

// Writes a text to standard output. On a terminal, control sequences are escaped: tokens may be any bytes.
void show(const std::string& generated) {
  const std::string text = ::isatty(STDOUT_FILENO) != 0 ? printable_with_style(generated) : generated;
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// Shows a text that arrives in parts, but never a part of a character: a token may be a single byte.
class Screen {
 public:
  void add(const std::string& part) {
    held_ += part;
    std::size_t end = held_.size();
    for (std::size_t size = 1; size <= std::min<std::size_t>(3, held_.size()); ++size) {
      if (!begins_character(std::string_view(held_).substr(held_.size() - size))) continue;
      end = held_.size() - size;
      break;
    }
    show(held_.substr(0, end));
    held_.erase(0, end);
  }

  // Shows the rest, complete or not.
  void finish() { show(held_ + "\n"); }

 private:
  // Returns true if a text is the beginning of one character in UTF-8, and not all of it.
  static bool begins_character(std::string_view text) {
    for (const char* rest : {"\x80", "\x80\x80", "\x80\x80\x80", "\xbf", "\xbf\x80", "\xbf\x80\x80"}) {
      const std::string whole = std::string(text) + rest;
      if (unicode::size_of_character(whole) == whole.size()) return true;
    }
    return false;
  }

  std::string held_;
};

// Returns the text that a token adds to the text of the previous one. SentencePiece's tokens only then keep the space
// in front of a word.
std::string text_behind(const Tokenizer& tokenizer, std::int64_t last, std::int64_t token) {
  if (last >= tokenizer.size()) return tokenizer.decode(std::array{token});
  return tokenizer.decode(std::array{last, token}).substr(tokenizer.decode(std::array{last}).size());
}

void generate(const ExperimentConfig& config, const std::string& weights, const Options& options) {
  const Splits splits = config.dataset.make();
  const auto task = config.task.make(splits.test->spec(), config.loss.make());
  const ModelSpec& spec = task->model();
  const bool tokens = spec.inputs.size() == 1 && spec.inputs[0].classes > 0 && spec.inputs[0].shape.size() == 1;
  if (!tokens || spec.outputs.size() != 1 || spec.outputs[0].shape.size() != 2) {
    throw ConfigError(
        "dataset: is not text: generate continues sequences of tokens, such as of the datasets text and tokens");
  }
  if (splits.test->spec().task == "masked_language_modelling") {
    throw ConfigError("dataset: hides tokens between others, so its models do not continue a text");
  }
  const auto& input = spec.inputs[0];
  std::shared_ptr<const Tokenizer> tokenizer = splits.tokenizer;
  if (!tokenizer) tokenizer = std::make_shared<const Numbers>(input.classes);
  const auto prompt = prompt_of(*tokenizer, options.prompt);
  const auto model = load_model(config, spec, weights);
  TextGenerator generator(*model, {.context = input.shape[0], .cache = options.cache, .sampling = options.sampling});
  Screen screen;
  screen.add(tokenizer->decode(prompt));
  const auto start = std::chrono::steady_clock::now();
  std::int64_t last = prompt.back();
  generator.run(prompt, options.tokens, [&](std::int64_t token) {
    screen.add(token < tokenizer->size() ? text_behind(*tokenizer, last, token) : "?");
    last = token;
    return true;
  });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  screen.finish();
  std::fprintf(stderr, "%lld tokens, %.0f per second\n", static_cast<long long>(options.tokens),
               static_cast<double>(options.tokens) / seconds);
}

int run(const Arguments& arguments) {
  Options options = parse(arguments);
  const SavedRun saved = find_saved_run(arguments.name, options.saved);
  use_cpu(options.saved.overrides);
  ExperimentConfig config;
  load_checked(config, {saved.config, options.saved.overrides});
  kernels::use_kernels(config.kernels);
  generate(config, saved.weights, options);
  return kDone;
}

const bool generate_registered =
    register_command({"generate", "continues a text with a trained language model", CommandGroup::kModels, run});

}  // namespace
}  // namespace phalanx
