// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>

#include "datasets/text/token_model.h"
#include "datasets/text/unicode.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

// The trie of all pieces, byte by byte.
class PieceTree {
 public:
  void add(std::string_view text, std::int64_t piece) {
    std::int32_t node = 0;
    for (const char byte : text) {
      const auto [found, is_new] = edges_.try_emplace(edge(node, byte), static_cast<std::int32_t>(pieces_.size()));
      if (is_new) pieces_.push_back(-1);
      node = found->second;
    }
    pieces_[static_cast<std::size_t>(node)] = piece;
  }

  // Calls f(piece, size) for each piece that is a prefix of a text, the shortest first.
  template <class F>
  void for_each_prefix(std::string_view text, const F& f) const {
    std::int32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto found = edges_.find(edge(node, text[i]));
      if (found == edges_.end()) return;
      node = found->second;
      if (const auto piece = pieces_[static_cast<std::size_t>(node)]; piece >= 0) f(piece, i + 1);
    }
  }

 private:
  static std::uint64_t edge(std::int32_t node, char byte) {
    return static_cast<std::uint64_t>(node) << 8 | static_cast<unsigned char>(byte);
  }

  std::vector<std::int64_t> pieces_{-1};  // by node; -1: no piece ends here
  std::unordered_map<std::uint64_t, std::int32_t> edges_;
};

class Unigram final : public TokenModel {
 public:
  Unigram(const UnigramPieces& model, const std::string& name)
      : name_(name), unknown_(model.unknown), byte_fallback_(model.byte_fallback) {
    if (model.pieces.empty()) throw DataError(name + ": the vocabulary is empty");
    const auto count = std::ssize(model.pieces);
    if (unknown_ && (*unknown_ < 0 || *unknown_ >= count)) {
      throw DataError(name + ": unk_id " + std::to_string(*unknown_) + " is not one of the " + std::to_string(count) +
                      " tokens");
    }
    double least = model.pieces[0].second;
    for (const auto& [text, score] : model.pieces) {
      const auto piece = std::ssize(scores_);
      vocabulary_.insert_or_assign(text, piece);
      if (!text.empty()) tree_.add(text, piece);
      scores_.push_back(score);
      least = std::min(least, score);
    }
    constexpr double kPenalty = 10;
    unknown_score_ = least - kPenalty;
    bytes_ = std::make_unique<ByteTokens>(vocabulary_);
  }

  void append(std::string_view word, std::vector<std::int64_t>& tokens) const override {
    const auto ends = best_paths(word);
    std::vector<std::string_view> parts;  // from right to left; consecutive unknown characters are one part
    bool after_unknown = false;
    for (auto end = word.size(); end > 0;) {
      const auto& [score, begin, piece] = ends[end];
      const auto part = word.substr(begin, end - begin);
      const bool unknown = unknown_ && piece == *unknown_;
      if (unknown && after_unknown) {
        parts.back() = {part.data(), part.size() + parts.back().size()};
      } else {
        parts.push_back(part);
      }
      after_unknown = unknown;
      end = begin;
    }
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (const auto found = vocabulary_.find(*part); found != vocabulary_.end()) {
        tokens.push_back(found->second);
      } else if (!byte_fallback_ || !bytes_->append(*part, tokens)) {
        tokens.push_back(unknown());
      }
    }
  }

 private:
  // The best division of a prefix of a word into tokens: its score, and the begin and the number of its last token.
  struct Path {
    double score = 0;
    std::size_t begin = kNone;
    std::int64_t piece = 0;
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  std::int64_t unknown() const {
    if (unknown_) return *unknown_;
    throw DataError(name_ + ": a text has a character without a token, and the model has no unk_id");
  }

  std::vector<Path> best_paths(std::string_view word) const {
    std::vector<Path> ends(word.size() + 1);
    const auto offer = [&](std::size_t begin, std::size_t size, double score, std::int64_t piece) {
      auto& end = ends[begin + size];
      const double sum = score + ends[begin].score;
      if (end.begin == kNone || sum > end.score) end = {sum, begin, piece};
    };
    unicode::for_each_character(word, [&](char32_t, std::size_t at, std::size_t size) {
      bool known = false;
      tree_.for_each_prefix(word.substr(at), [&](std::int64_t piece, std::size_t length) {
        offer(at, length, scores_[static_cast<std::size_t>(piece)], piece);
        known |= length == size;
      });
      if (!known) offer(at, size, unknown_score_, unknown());
    });
    return ends;
  }

  std::string name_;
  std::optional<std::int64_t> unknown_;
  bool byte_fallback_;
  Vocabulary vocabulary_;
  PieceTree tree_;
  std::vector<double> scores_;  // by number
  double unknown_score_ = 0;
  std::unique_ptr<ByteTokens> bytes_;
};

}  // namespace

std::unique_ptr<TokenModel> make_unigram(const UnigramPieces& pieces, const std::string& name) {
  return std::make_unique<Unigram>(pieces, name);
}

}  // namespace phalanx
