// SPDX-License-Identifier: Apache-2.0
// EMNIST (Cohen, Afshar, Tapson, van Schaik 2017, arXiv:1702.05373): handwritten letters and digits in the format of
// MNIST, in six divisions. Images are stored transposed, and letters are numbered from 1.
#include <array>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/files/idx_images.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

struct Division {
  const char* name;
  std::int64_t classes, first_label;
};
constexpr std::array kDivisions{Division{"balanced", 47, 0}, Division{"byclass", 62, 0}, Division{"bymerge", 47, 0},
                                Division{"digits", 10, 0},   Division{"letters", 26, 1}, Division{"mnist", 10, 0}};

std::vector<std::string> names_of_divisions() {
  std::vector<std::string> names;
  for (const auto& division : kDivisions) names.emplace_back(division.name);
  return names;
}

struct EmnistConfig {
  std::string root;
  std::string division = "balanced";
  IdxPixels pixels{.mean = 0.1736, .deviation = 0.3317};  // statistics of all divisions

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of the IDX files; empty: ${PHALANX_DATA}/emnist, else data/emnist");
    v("division", division, "which part of the images, and with which classes", config::one_of(names_of_divisions()));
    pixels.visit(v);
  }
};

Splits load_emnist(const EmnistConfig& config) {
  IdxImages images{.transposed = true};
  for (const auto& division : kDivisions) {
    if (config.division != division.name) continue;
    images.classes = division.classes;
    images.first_label = division.first_label;
  }
  const auto prefix = "emnist-" + config.division;
  const DatasetFiles files{
      .dataset = "emnist",
      .names = idx_image_names(prefix + "-train", prefix + "-test"),
      .suffixes = {"", ".gz"},
      .how_to_get = "To get them: bazel run //tools:download -- emnist, and unpack its archive gzip.zip there.\n" +
                    kFromElsewhere};
  return load_idx_images(files, config.root, images, config.pixels);
}

const bool emnist_registered = Datasets::global().add<EmnistConfig>(
    "emnist", "EMNIST: handwritten letters and digits, 28 x 28 pixels", load_emnist);

}  // namespace
}  // namespace phalanx
