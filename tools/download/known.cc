// SPDX-License-Identifier: Apache-2.0
// The servers of datasets, and the SHA-256 of the files as published by their authors.
#include <utility>

#include "tools/download/fetch.h"

namespace phalanx {
namespace {

struct Published {
  const char* name;
  std::int64_t bytes;
  const char* sha256;
};

// Allows for a mirror whose file is packed slightly differently; the checksum then reports that.
std::int64_t with_margin(std::int64_t bytes) { return bytes + bytes / 8; }

std::vector<RemoteFile> files_at(const std::vector<std::string>& folders, const std::vector<Published>& published) {
  std::vector<RemoteFile> files;
  for (const auto& [name, bytes, sha256] : published) {
    RemoteFile file{.name = name, .sha256 = sha256, .max_bytes = with_margin(bytes), .mirrors = {}};
    for (const auto& folder : folders) file.mirrors.push_back(folder + name);
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

const std::vector<KnownSet>& known_sets() {
  static const std::vector<KnownSet> sets{
      {.name = "cifar10",
       .folder = "cifar10",
       .files = files_at(
           {"https://www.cs.toronto.edu/~kriz/"},
           {{"cifar-10-binary.tar.gz", 170052171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}}),
       .unpack = "tar -xzf cifar-10-binary.tar.gz"},
      {.name = "cifar100",
       .folder = "cifar100",
       .files = files_at({"https://www.cs.toronto.edu/~kriz/"},
                         {{"cifar-100-binary.tar.gz", 168513733,
                           "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"}}),
       .unpack = "tar -xzf cifar-100-binary.tar.gz"},
      {.name = "emnist",
       .folder = "emnist",
       .files = files_at(
           {"https://biometrics.nist.gov/cs_links/EMNIST/", "http://www.itl.nist.gov/iaui/vip/cs_links/EMNIST/"},
           {{"gzip.zip", 561753746, "fb9bb67e33772a9cc0b895e4ecf36d2cf35be8b709693c3564cea2a019fcda8e"}}),
       .unpack = "unzip -j gzip.zip"},
      {.name = "fashion_mnist",
       .folder = "fashion_mnist",
       .files = files_at(
           {"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"},
           {{"train-images-idx3-ubyte.gz", 26421880,
             "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
            {"train-labels-idx1-ubyte.gz", 29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
            {"t10k-images-idx3-ubyte.gz", 4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
            {"t10k-labels-idx1-ubyte.gz", 5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}}),
       .unpack = ""},
      {.name = "mnist",
       .folder = "mnist",
       .files = files_at(
           {"https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/",
            "http://yann.lecun.com/exdb/mnist/"},
           {{"train-images-idx3-ubyte.gz", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
            {"train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
            {"t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
            {"t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}}),
       .unpack = ""},
      {.name = "tinyshakespeare",
       .folder = "text",
       .files = files_at({"https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/"},
                         {{"input.txt", 1115394, "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"}}),
       .unpack = ""},
  };
  return sets;
}

}  // namespace phalanx
