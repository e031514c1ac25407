// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <openssl/evp.h>

#include <cstdio>
#include <string>

#include "datasets/images/encode.h"
#include "engine/html/page.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "tools/data/commands.h"
#include "tools/data/sample_some.h"

namespace phalanx {
namespace {

std::string base64(const std::string& bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // with a terminating zero
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

// Scales the darkest to the brightest value to 0 to 255: the normalization of the dataset is not known here.
at::Tensor as_bytes(const at::Tensor& image) {
  const double low = image.min().item<double>(), high = image.max().item<double>();
  return ((image - low) * (255 / std::max(high - low, 1e-9))).round().to(at::kByte);
}

}  // namespace

void write_contact_sheet(const Splits& splits, std::int64_t samples, std::int64_t seed, const std::string& file) {
  const Dataset& dataset = *splits.train;
  const auto& spec = dataset.spec();
  const auto& shape = spec.inputs.at(0).shape;
  if (shape.size() != 3 || (shape[0] != 1 && shape[0] != 3)) {
    throw ConfigError("inspect: samples of the dataset are not images with one or three channels; use stats");
  }
  const auto indices = sample_some(dataset.size(), samples, seed);
  Batch batch;
  dataset.gather(indices, static_cast<std::uint64_t>(seed), batch);
  const bool labelled = !spec.targets.empty() && spec.targets[0].classes > 0 && spec.targets[0].shape.empty();
  std::string figures;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    figures += "<figure style=\"display:inline-block;margin:4px;text-align:center\"><img alt=\"sample " +
               std::to_string(indices[i]) +
               "\" style=\"width:96px;image-rendering:pixelated\" src=\"data:image/png;base64," +
               base64(encode_png(as_bytes(batch.inputs[0][row]))) + "\"><figcaption>" + std::to_string(indices[i]);
    if (labelled) figures += ": class " + std::to_string(batch.targets[0][row].item<std::int64_t>());
    figures += "</figcaption></figure>\n";
  }
  write_atomically(file, to_page("Samples", to_section("Training samples, as a model sees them", figures)));
  std::printf("%s has %zu of %lld samples\n", file.c_str(), indices.size(), static_cast<long long>(dataset.size()));
}

}  // namespace phalanx
