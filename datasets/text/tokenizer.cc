#include "datasets/text/tokenizer.h"

#include <filesystem>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

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

std::pair<std::string, std::string> pair_in(const std::string& text, const std::string& source) {
  const auto space = text.find(' ');
  if (space == std::string::npos) throw DataError(source + ": the merge \"" + text + "\" is no pair");
  return {text.substr(0, space), text.substr(space + 1)};
}

// "a b", or ["a", "b"] as newer versions write it.
std::pair<std::string, std::string> merge_of(const JsonValue& merge, const std::string& source) {
  if (merge.is_string()) return pair_in(merge.as<std::string>(), source);
  auto two = merge.as<std::vector<std::string>>();
  if (two.size() != 2) merge.refuse("is a merge of " + std::to_string(two.size()) + " tokens, not of 2");
  return {std::move(two[0]), std::move(two[1])};
}

// Of pre-tokenizers, those of GPT-2 and of models like it: ByteLevel, alone or after a Split by a pattern.
std::string pattern_of(const JsonValue& pre_tokenizer) {
  const auto refuse = [&](const std::string& what) {
    pre_tokenizer.refuse("has " + what + "; byte-level BPE has ByteLevel, or Split and it");
  };
  if (!pre_tokenizer.is_object()) refuse("nothing");
  std::vector<JsonValue> steps{pre_tokenizer};
  if (pre_tokenizer.get<std::string>("type") == "Sequence") steps = pre_tokenizer.at("pretokenizers").elements();
  std::string pattern;
  bool bytes = false;
  for (const auto& step : steps) {
    const auto type = step.get<std::string>("type");
    if (type == "ByteLevel") {
      bytes = true;
      if (step.get_or("add_prefix_space", false)) refuse("add_prefix_space: true");
    } else if (type == "Split" && step.at("pattern").has("Regex") && pattern.empty()) {
      pattern = step.at("pattern").get<std::string>("Regex");
    } else {
      refuse(type);
    }
  }
  if (!bytes) refuse("no ByteLevel");
  return pattern;
}

std::unique_ptr<Tokenizer> from_tokenizer_json(const std::string& file) {
  const auto json = parse_json(read_file(file), file);
  const auto model = json.at("model");
  if (const auto type = model.get<std::string>("type"); type != "BPE") model.refuse("is " + type + ", not BPE");
  BytePairs pairs{.vocabulary = model.get<std::map<std::string, std::int64_t>>("vocab"),
                  .pattern = pattern_of(json.at("pre_tokenizer"))};
  for (const auto& merge : model.at("merges").elements()) pairs.merges.push_back(merge_of(merge, file));
  if (json.has("added_tokens")) {
    for (const auto& added : json.at("added_tokens").elements()) {
      pairs.special[added.get<std::string>("content")] = added.get<std::int64_t>("id");
    }
  }
  return make_byte_pair_encoding(pairs, file);
}

std::unique_ptr<Tokenizer> from_gpt2_files(const fs::path& folder) {
  const fs::path vocabulary = folder / "vocab.json", merges = folder / "merges.txt";
  BytePairs pairs{
      .vocabulary = parse_json(read_file(vocabulary), vocabulary).as<std::map<std::string, std::int64_t>>()};
  std::istringstream lines(read_file(merges));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with("#version")) continue;
    pairs.merges.push_back(pair_in(line, merges));
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
