#include "datasets/text/tokenizer.h"

#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "datasets/text/byte_pair_encoding.h"
#include "datasets/text/sentence_piece.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/json.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

class Bytes final : public Tokenizer {
 public:
  std::int64_t size() const override { return 256; }

  std::vector<std::int64_t> encode(std::string_view text) const override {
    std::vector<std::int64_t> tokens;
    for (const char letter : text) tokens.push_back(static_cast<unsigned char>(letter));
    return tokens;
  }

  std::string decode(std::span<const std::int64_t> tokens) const override {
    std::string text;
    for (const auto token : tokens) {
      if (token < 0 || token > 255) throw std::out_of_range("token " + std::to_string(token) + " is no byte");
      text += static_cast<char>(token);
    }
    return text;
  }
};

JsonValue parse(const fs::path& file) { return parse_json(read_file(file), file.string()); }

std::pair<std::string, std::string> merge_of(const std::string& text, const fs::path& file) {
  const auto space = text.find(' ');
  if (space == std::string::npos) throw DataError(file.string() + ": the merge \"" + text + "\" is no pair");
  return {text.substr(0, space), text.substr(space + 1)};
}

// Throws ConfigError for what a file asks for and Phalanx does not do: it would have other tokens.
[[noreturn]] void refuse_feature(const fs::path& file, const std::string& feature) {
  throw ConfigError(file.string() + ": " + feature + " is not supported; use another tokenizer");
}

// Of pre-tokenizers, those of GPT-2 and of models like it: ByteLevel, alone or after a Split by a pattern.
std::string pattern_of(const JsonValue& pre_tokenizer, const fs::path& file) {
  const auto refuse = [&](const std::string& what) { refuse_feature(file, "pre_tokenizer: " + what); };
  if (pre_tokenizer.is_null()) refuse("none");
  const bool several = pre_tokenizer.get<std::string>("type") == "Sequence";
  const auto steps = several ? pre_tokenizer.at("pretokenizers").elements() : std::vector<JsonValue>{pre_tokenizer};
  std::string pattern;
  bool bytes = false;
  for (const auto& step : steps) {
    const auto type = step.get<std::string>("type");
    if (bytes) refuse(type + " behind ByteLevel");
    if (type == "ByteLevel") {
      bytes = true;
      if (step.get_or("add_prefix_space", true)) refuse("ByteLevel with add_prefix_space: true");
      if (step.get_or("use_regex", true) != pattern.empty()) refuse("ByteLevel with this use_regex");
    } else if (type == "Split" && step.at("pattern").has("Regex") && pattern.empty()) {
      pattern = step.at("pattern").get<std::string>("Regex");
      if (const auto behavior = step.get<std::string>("behavior"); behavior != "Isolated") {
        refuse("Split with behavior: " + behavior);
      }
      if (step.get_or("invert", false)) refuse("Split with invert: true");
    } else {
      refuse(type);
    }
  }
  if (!bytes) refuse("no ByteLevel");
  return pattern;
}

void refuse_what_is_not_done(const JsonValue& json, const fs::path& file) {
  if (json.has("normalizer") && !json.at("normalizer").is_null()) refuse_feature(file, "a normalizer");
  const auto model = json.at("model");
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    const bool absent = !model.has(key) || model.at(key).is_null();
    if (!absent && !(model.at(key).is_string() && model.get<std::string>(key).empty())) {
      refuse_feature(file, std::string("model: ") + key);
    }
  }
  for (const char* key : {"ignore_merges", "byte_fallback"}) {
    if (model.get_or(key, false)) refuse_feature(file, std::string("model: ") + key);
  }
  if (!json.has("added_tokens") || json.at("added_tokens").is_null()) return;
  for (const auto& token : json.at("added_tokens").elements()) {
    for (const char* key : {"lstrip", "rstrip", "single_word"}) {
      if (token.get_or(key, false)) refuse_feature(file, std::string("added_tokens: ") + key);
    }
  }
}

std::unique_ptr<Tokenizer> from_tokenizer_json(const fs::path& file) {
  const auto json = parse(file);
  const auto model = json.at("model");
  if (const auto type = model.get<std::string>("type"); type != "BPE") {
    refuse_feature(file, "model: " + type);
  }
  refuse_what_is_not_done(json, file);
  BytePairs pairs{.vocabulary = model.get<std::map<std::string, std::int64_t>>("vocab"),
                  .pattern = pattern_of(json.at("pre_tokenizer"), file)};
  for (const auto& merge : model.at("merges").elements()) {
    if (merge.is_string()) {
      pairs.merges.push_back(merge_of(merge.as<std::string>(), file));
      continue;
    }
    auto pair = merge.as<std::vector<std::string>>();
    if (pair.size() != 2) merge.refuse("has " + std::to_string(pair.size()) + " tokens; a merge is of two");
    pairs.merges.emplace_back(std::move(pair[0]), std::move(pair[1]));
  }
  if (json.has("added_tokens") && !json.at("added_tokens").is_null()) {
    for (const auto& token : json.at("added_tokens").elements()) {
      auto& texts = token.get_or("normalized", false) ? pairs.added : pairs.special;
      texts[token.get<std::string>("content")] = token.get<std::int64_t>("id");
    }
  }
  return make_byte_pair_encoding(pairs, file);
}

std::unique_ptr<Tokenizer> from_gpt2_files(const fs::path& folder) {
  const fs::path vocabulary = folder / "vocab.json", merges = folder / "merges.txt";
  BytePairs pairs{.vocabulary = parse(vocabulary).as<std::map<std::string, std::int64_t>>()};
  std::istringstream lines(read_file(merges));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with("#version")) continue;
    pairs.merges.push_back(merge_of(line, merges));
  }
  constexpr const char* kEnd = "<|endoftext|>";
  if (const auto end = pairs.vocabulary.find(kEnd); end != pairs.vocabulary.end()) pairs.special[kEnd] = end->second;
  return make_byte_pair_encoding(pairs, folder);
}

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(const std::string& name) {
  if (name == "bytes") return std::make_unique<Bytes>();
  const fs::path path = name;
  std::error_code unreadable;
  if (fs::is_regular_file(path, unreadable)) {
    return path.extension() == ".model" ? make_sentence_piece(path) : from_tokenizer_json(path);
  }
  // Before tokenizer.json, which models with SentencePiece have beside it, and which is then no byte-level BPE.
  for (const char* file : {"tokenizer.model", "spiece.model"}) {
    if (fs::is_regular_file(path / file, unreadable)) return make_sentence_piece(path / file);
  }
  if (fs::is_regular_file(path / "tokenizer.json", unreadable)) return from_tokenizer_json(path / "tokenizer.json");
  if (fs::is_regular_file(path / "vocab.json", unreadable)) return from_gpt2_files(path);
  throw DataError("tokenizer \"" + name +
                  "\": neither bytes, nor a tokenizer.json or NAME.model, nor a folder with one of these or with "
                  "vocab.json and merges.txt");
}

}  // namespace phalanx
