// SPDX-License-Identifier: Apache-2.0
// Tokens that a tokenizer has numbered, in files that contain only unsigned little-endian integers of 16 or 32 bits, as
// nanoGPT's files do. Input [n, context] int64, target [n, context] int64: the token that follows each position. Only
// the parts of a file that are read are loaded, and all ranks of a host share them.
#include <c10/util/Exception.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "datasets/batch_memory.h"
#include "datasets/dataset.h"
#include "datasets/malformed.h"
#include "datasets/root.h"
#include "datasets/text/tokenizer.h"
#include "framework/base/config/visitor.h"
#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/mapped_file.h"
#include "framework/base/read_at.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

struct TokensConfig {
  std::string root;
  std::string train = "train.bin";
  std::string validation;
  std::string test = "val.bin";
  std::string type = "uint16";
  std::int64_t vocabulary = 50257;
  std::int64_t context = 1024;
  std::int64_t stride = 0;
  std::string tokenizer;

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of the files; empty: ${PHALANX_DATA}/tokens, else data/tokens");
    v("train", train, "file to train on");
    v("validation", validation, "file to validate on; empty: none");
    v("test", test, "file to test on");
    v("type", type, "type of a token in the files", config::one_of({"uint16", "uint32"}));
    v("vocabulary", vocabulary, "tokens lie in [0, vocabulary)", config::between(2, 1L << 32));
    v("context", context, "tokens per sample", config::between(1, 1 << 20));
    v("stride", stride, "distance between training samples, in tokens; 0: context, so that they do not overlap",
      config::at_least(0));
    v("tokenizer", tokenizer,
      "what the tokens stand for, as for tools:data tokenize: bytes, a tokenizer.json, a SentencePiece .model, or a "
      "folder with one of these; empty: unknown");
  }
};

// A read-only file. A small file is mapped into memory. A large one is read piece by piece, because mapped pages that
// have been read count as memory of this process. In both cases the page cache of the system holds one copy for all
// ranks of a host.
class TokenFile {
 public:
  explicit TokenFile(const fs::path& path) : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    constexpr std::size_t kLargestMapped = 128 << 20;
    struct stat status{};
    const auto fail = [&] { throw DataError(path.string() + ": " + std::generic_category().message(errno)); };
    if (!file_.valid() || ::fstat(file_.get(), &status) != 0) fail();
    size_ = static_cast<std::size_t>(status.st_size);
    if (size_ == 0) throw_malformed(path, 0, "the file is empty");
    if (size_ <= kLargestMapped) mapped_.emplace(path.string(), file_);
  }

  std::size_t bytes() const { return size_; }

  // Returns `count` values from index `begin` on. If the file is not mapped, they are stored in `room`.
  template <class T>
  const T* read(std::int64_t begin, std::int64_t count, std::vector<T>& room) const {
    if (mapped_) return reinterpret_cast<const T*>(mapped_->bytes().data()) + begin;
    room.resize(static_cast<std::size_t>(count));
    const auto bytes = static_cast<std::int64_t>(room.size() * sizeof(T));
    const auto offset = begin * static_cast<std::int64_t>(sizeof(T));
    const auto got = read_at(file_.get(), room.data(), room.size() * sizeof(T), offset);
    if (got < 0) throw DataError(path_.string() + ": " + std::generic_category().message(errno));
    if (got < bytes) throw_malformed(path_, offset + got, "the file has become shorter");
    return room.data();
  }

 private:
  fs::path path_;
  Descriptor file_;
  std::optional<MappedFile> mapped_;  // empty if the file is read instead
  std::size_t size_ = 0;
};

template <class T>
class Tokens final : public Dataset {
 public:
  // Sample i has the `context` tokens from i * stride.
  Tokens(fs::path path, std::int64_t vocabulary, std::int64_t context, std::int64_t stride)
      : path_(std::move(path)),
        file_(path_),
        spec_(language_samples(context, vocabulary)),
        context_(context),
        stride_(stride),
        tokens_(static_cast<std::int64_t>(file_.bytes() / sizeof(T))) {
    if (file_.bytes() % sizeof(T) != 0) {
      throw_malformed(
          path_, static_cast<std::int64_t>(file_.bytes()),
          "the file ends within a token of " + std::to_string(sizeof(T)) + " bytes; is dataset.type correct?");
    }
    if (tokens_ > context) return;
    throw DataError(path_.string() + ": has " + std::to_string(tokens_) + " tokens, but a sample needs " +
                    std::to_string(context + 1) + " (dataset.context and one more)");
  }

  std::int64_t size() const override { return (tokens_ - 1 - context_) / stride_ + 1; }
  const SampleSpec& spec() const override { return spec_; }
  bool samples_overlap() const override { return stride_ < context_; }

  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const auto rows = std::ssize(indices);
    auto* input = ensure(batch.inputs, 0, std::array{rows, context_}, at::kLong).data_ptr<std::int64_t>();
    auto* target = ensure(batch.targets, 0, std::array{rows, context_}, at::kLong).data_ptr<std::int64_t>();
    std::vector<T> room;
    for (const auto index : indices) {
      TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " is out of range; the size is ", size());
      const T* const first = file_.read<T>(index * stride_, context_ + 1, room);
      const auto largest = std::max(widen(first, context_, input), first[context_]);
      if (static_cast<std::int64_t>(largest) >= spec_.inputs[0].classes) refuse(first, index * stride_);
      target = std::copy_n(input + 1, context_ - 1, target);
      *target++ = static_cast<std::int64_t>(first[context_]);
      input += context_;
    }
  }

 private:
  // Tokens are checked when they are read; a check at the start would have to read the whole file.
  [[noreturn]] void refuse(const T* first, std::int64_t begin) const {
    const auto classes = spec_.inputs[0].classes;
    const T* const largest = std::max_element(first, first + context_ + 1);
    throw_malformed(path_, (begin + (largest - first)) * static_cast<std::int64_t>(sizeof(T)),
                    "token " + std::to_string(*largest) + ", but dataset.vocabulary is " + std::to_string(classes));
  }

  // Widens the tokens to int64 and returns the largest one. The loop runs over whole blocks of constant length, which
  // compilers vectorize even at -O2.
  static T widen(const T* __restrict in, std::int64_t count, std::int64_t* __restrict out) {
    constexpr std::int64_t kBlock = 16;
    std::array<T, kBlock> largest{};
    std::int64_t i = 0;
    for (; i + kBlock <= count; i += kBlock) {
      for (std::int64_t j = 0; j < kBlock; ++j) {
        const T value = in[i + j];
        out[i + j] = static_cast<std::int64_t>(value);
        largest[static_cast<std::size_t>(j)] = std::max(largest[static_cast<std::size_t>(j)], value);
      }
    }
    for (; i < count; ++i) {
      out[i] = static_cast<std::int64_t>(in[i]);
      largest[0] = std::max(largest[0], in[i]);
    }
    return *std::ranges::max_element(largest);
  }

  fs::path path_;
  TokenFile file_;
  SampleSpec spec_;
  std::int64_t context_, stride_, tokens_;
};

std::shared_ptr<const Tokenizer> tokenizer_of(const TokensConfig& config) {
  std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(config.tokenizer);
  if (tokenizer->size() <= config.vocabulary) return tokenizer;
  throw ConfigError("dataset.tokenizer: " + config.tokenizer + " has " + std::to_string(tokenizer->size()) +
                    " tokens, but dataset.vocabulary is " + std::to_string(config.vocabulary));
}

Splits load_tokens(const TokensConfig& config) {
  const fs::path root = dataset_root(config.root, "tokens");
  const auto split = [&](const std::string& name, std::int64_t stride) -> std::shared_ptr<const Dataset> {
    const auto file = find_files({.dataset = "tokens",
                                  .names = {name},
                                  .how_to_get = "Files of token numbers, such as nanoGPT's prepare.py writes; "
                                                "to use others, set dataset.root and dataset.train"},
                                 root)
                          .front();
    if (config.type == "uint16") {
      return std::make_shared<Tokens<std::uint16_t>>(file, config.vocabulary, config.context, stride);
    }
    return std::make_shared<Tokens<std::uint32_t>>(file, config.vocabulary, config.context, stride);
  };
  Splits splits{.train = split(config.train, config.stride == 0 ? config.context : config.stride),
                .validation = nullptr,
                .test = split(config.test, config.context),
                .tokenizer = config.tokenizer.empty() ? nullptr : tokenizer_of(config)};
  if (!config.validation.empty()) splits.validation = split(config.validation, config.context);
  return splits;
}

const bool tokens_registered =
    Datasets::global().add<TokensConfig>("tokens", "files of numbered tokens, mapped into memory", load_tokens);

}  // namespace
}  // namespace phalanx
