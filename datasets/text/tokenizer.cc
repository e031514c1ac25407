#include "datasets/text/tokenizer.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "datasets/text/byte_pair_encoding.h"
#include "datasets/text/sentence_piece.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

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

Json parse(const fs::path& file) {
  Json json = Json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw DataError(file.string() + ": is not a JSON object");
  return json;
}

// What does not have the type that is expected of it throws.
template <class Body>
auto reading(const fs::path& file, const Body& body) {
  try {
    return body();
  } catch (const Json::exception& error) {
    throw DataError(file.string() + ": not a byte-level BPE as tokenizers write it: " + error.what());
  }
}

std::pair<std::string, std::string> merge_of(const std::string& text, const fs::path& file) {
  const auto space = text.find(' ');
  if (space == std::string::npos) throw DataError(file.string() + ": the merge \"" + text + "\" is no pair");
  return {text.substr(0, space), text.substr(space + 1)};
}

// Of pre-tokenizers, those of GPT-2 and of models like it: ByteLevel, alone or after a Split by a pattern.
std::string pattern_of(const Json& pre_tokenizer, const fs::path& file) {
  const auto refuse = [&](const std::string& what) {
    throw DataError(file.string() + ": its pre_tokenizer has " + what +
                    "; byte-level BPE has ByteLevel, or Split and it");
  };
  if (!pre_tokenizer.is_object()) refuse("nothing");
  Json::array_t steps{pre_tokenizer};
  if (pre_tokenizer.at("type") == "Sequence") steps = pre_tokenizer.at("pretokenizers").get<Json::array_t>();
  std::string pattern;
  bool bytes = false;
  for (const auto& step : steps) {
    const auto type = step.at("type").get<std::string>();
    if (type == "ByteLevel") {
      bytes = true;
      if (step.value("add_prefix_space", false)) refuse("add_prefix_space: true");
    } else if (type == "Split" && step.at("pattern").contains("Regex") && pattern.empty()) {
      pattern = step.at("pattern").at("Regex").get<std::string>();
    } else {
      refuse(type);
    }
  }
  if (!bytes) refuse("no ByteLevel");
  return pattern;
}

std::unique_ptr<Tokenizer> from_tokenizer_json(const fs::path& file) {
  const Json json = parse(file);
  const auto pairs = reading(file, [&] {
    const Json& model = json.at("model");
    if (model.at("type") != "BPE") {
      throw DataError(file.string() + ": its model is " + model.at("type").get<std::string>() + ", not BPE");
    }
    BytePairs read{.vocabulary = model.at("vocab").get<std::map<std::string, std::int64_t>>(),
                   .pattern = pattern_of(json.at("pre_tokenizer"), file)};
    for (const auto& merge : model.at("merges")) {
      if (merge.is_string()) {
        read.merges.push_back(merge_of(merge.get<std::string>(), file));
      } else {
        read.merges.emplace_back(merge.at(0).get<std::string>(), merge.at(1).get<std::string>());
      }
    }
    for (const auto& added : json.value("added_tokens", Json::array())) {
      read.special[added.at("content").get<std::string>()] = added.at("id").get<std::int64_t>();
    }
    return read;
  });
  return make_byte_pair_encoding(pairs, file);
}

std::unique_ptr<Tokenizer> from_gpt2_files(const fs::path& folder) {
  const fs::path vocabulary = folder / "vocab.json", merges = folder / "merges.txt";
  const Json json = parse(vocabulary);
  BytePairs pairs{.vocabulary = reading(vocabulary, [&] { return json.get<std::map<std::string, std::int64_t>>(); })};
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
