// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/decoder.h"

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "datasets/text/byte_alphabet.h"
#include "datasets/text/oniguruma_pattern.h"
#include "datasets/text/token_model.h"
#include "datasets/text/unicode.h"
#include "datasets/text/unsupported.h"
#include "datasets/text/word_pattern.h"

namespace phalanx {
namespace {

void replace_all(std::string& text, std::string_view old, std::string_view by) {
  if (old.empty()) return;
  for (std::size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += by.size()) {
    text.replace(at, old.size(), by);
  }
}

class ByteLevelDecoder final : public Decoder {
 public:
  void apply(std::vector<TokenText>& texts) const override {
    for (auto& [text, added] : texts) {
      if (added) continue;
      if (auto bytes = from_byte_alphabet(text)) text = std::move(*bytes);
    }
  }
};

// Decodes byte tokens such as <0x0A>.
class ByteFallback final : public Decoder {
 public:
  ByteFallback() {
    for (int byte = 0; byte < 256; ++byte) {
      bytes_[ByteTokens::name(static_cast<unsigned char>(byte))] = static_cast<char>(byte);
    }
  }
  void apply(std::vector<TokenText>& texts) const override {
    for (auto& [text, added] : texts) {
      if (const auto found = bytes_.find(text); found != bytes_.end()) text = found->second;
    }
  }

 private:
  ByText<char> bytes_;
};

class Fuse final : public Decoder {
 public:
  void apply(std::vector<TokenText>& texts) const override {
    std::string all;
    for (const auto& [text, added] : texts) all += text;
    texts.assign(1, {std::move(all), false});
  }
};

class StripDecoder final : public Decoder {
 public:
  StripDecoder(std::string content, std::int64_t start) : content_(std::move(content)), start_(start) {}
  void apply(std::vector<TokenText>& texts) const override {
    for (auto& [text, added] : texts) {
      std::size_t begin = 0;
      for (std::int64_t i = 0; i < start_ && std::string_view(text).substr(begin).starts_with(content_); ++i) {
        begin += content_.size();
      }
      text.erase(0, begin);
    }
  }

 private:
  std::string content_;
  std::int64_t start_;
};

class ReplaceDecoder final : public Decoder {
 public:
  ReplaceDecoder(const std::string& pattern, std::string content, const std::string& name)
      : pattern_(pattern, name), content_(std::move(content)) {}
  void apply(std::vector<TokenText>& texts) const override {
    for (auto& [text, added] : texts) {
      std::string result;
      pattern_.for_each_span(text, [&](Span span) {
        result += span.is_match ? std::string_view(content_)
                                : std::string_view(text).substr(span.begin, span.end - span.begin);
      });
      text = std::move(result);
    }
  }

 private:
  WordPattern pattern_;
  std::string content_;
};

class MetaspaceDecoder final : public Decoder {
 public:
  MetaspaceDecoder(std::string replacement, bool prepended)
      : replacement_(std::move(replacement)), prepended_(prepended) {}
  void apply(std::vector<TokenText>& texts) const override {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      replace_all(texts[i].text, replacement_, i == 0 && prepended_ ? "" : " ");
    }
  }

 private:
  std::string replacement_;
  bool prepended_;
};

class WordPieceDecoder final : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  void apply(std::vector<TokenText>& texts) const override {
    // Replacements that restore the usual spacing of English text.
    constexpr std::array<std::pair<const char*, const char*>, 11> kCleanups{{{" .", "."},
                                                                             {" ?", "?"},
                                                                             {" !", "!"},
                                                                             {" ,", ","},
                                                                             {" ' ", "'"},
                                                                             {" n't", "n't"},
                                                                             {" 'm", "'m"},
                                                                             {" do not", " don't"},
                                                                             {" 's", "'s"},
                                                                             {" 've", "'ve"},
                                                                             {" 're", "'re"}}};
    for (std::size_t i = 0; i < texts.size(); ++i) {
      auto& text = texts[i].text;
      if (i > 0 && text.starts_with(prefix_)) {
        text.erase(0, prefix_.size());
      } else if (i > 0) {
        text.insert(0, " ");
      }
      if (!cleanup_) continue;
      for (const auto& [old, by] : kCleanups) replace_all(text, old, by);
    }
  }

 private:
  std::string prefix_;
  bool cleanup_;
};

// Replaces the suffix that ends each word with a space, except for the last word.
class WordEnds final : public Decoder {
 public:
  explicit WordEnds(std::string suffix) : suffix_(std::move(suffix)) {}
  void apply(std::vector<TokenText>& texts) const override {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      replace_all(texts[i].text, suffix_, i + 1 == texts.size() ? "" : " ");
    }
  }

 private:
  std::string suffix_;
};

class Spaces final : public Decoder {
 public:
  void apply(std::vector<TokenText>& texts) const override {
    for (std::size_t i = 1; i < texts.size(); ++i) texts[i].text.insert(0, " ");
  }
};

class SequenceDecoder final : public Decoder {
 public:
  explicit SequenceDecoder(std::vector<std::unique_ptr<Decoder>> steps) : steps_(std::move(steps)) {}
  void apply(std::vector<TokenText>& texts) const override {
    for (const auto& step : steps_) step->apply(texts);
  }

 private:
  std::vector<std::unique_ptr<Decoder>> steps_;
};

std::unique_ptr<Decoder> make_strip(const JsonValue& json) {
  const auto content = json.get<std::string>("content");
  if (json.get<std::int64_t>("stop") != 0) refuse_unsupported(json, "Strip at the end of a text");
  if (content.empty()) json.refuse("the content is empty");
  return std::make_unique<StripDecoder>(content, json.get<std::int64_t>("start"));
}

}  // namespace

std::unique_ptr<Decoder> make_byte_level_decoder() { return std::make_unique<ByteLevelDecoder>(); }

std::unique_ptr<Decoder> make_decoder(const JsonValue& json, const std::string& name) {
  if (json.is_null()) return std::make_unique<Spaces>();
  const auto type = json.get<std::string>("type");
  if (type == "ByteLevel") return make_byte_level_decoder();
  if (type == "ByteFallback") return std::make_unique<ByteFallback>();
  if (type == "Fuse") return std::make_unique<Fuse>();
  if (type == "Strip") return make_strip(json);
  if (type == "BPEDecoder") return std::make_unique<WordEnds>(json.get<std::string>("suffix"));
  if (type == "WordPiece") {
    return std::make_unique<WordPieceDecoder>(json.get<std::string>("prefix"), json.get<bool>("cleanup"));
  }
  if (type == "Metaspace") {
    const bool prepended = json.get_or<std::string>(
                               "prepend_scheme", json.get_or("add_prefix_space", true) ? "always" : "never") != "never";
    return std::make_unique<MetaspaceDecoder>(json.get<std::string>("replacement"), prepended);
  }
  if (type == "Replace") {
    return std::make_unique<ReplaceDecoder>(pattern_of(json.at("pattern")), json.get<std::string>("content"), name);
  }
  if (type != "Sequence") refuse_unsupported(json, type);
  std::vector<std::unique_ptr<Decoder>> steps;
  for (const auto& step : json.at("decoders").elements()) steps.push_back(make_decoder(step, name));
  return std::make_unique<SequenceDecoder>(std::move(steps));
}

}  // namespace phalanx
