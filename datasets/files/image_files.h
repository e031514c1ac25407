// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace phalanx {

/// An image and its class.
struct ImageFile {
  std::filesystem::path path;
  std::int64_t label = 0;  // place in ImageFolders::classes
};

/// The images of a folder, by split. A split that the folder does not have is empty.
struct ImageFolders {
  std::vector<std::string> classes;  // sorted
  std::vector<ImageFile> train;
  std::vector<ImageFile> validation;
  std::vector<ImageFile> test;
};

/// Finds the images below `root`: ROOT/train/CLASS/FILE, and the same below `test` and below `val`, `valid` or
/// `validation`. The folders of `train` are the classes. Without a folder `train`, the folders of `root` are the
/// classes, and all images are training images. Images in folders within the folder of a class belong to this class. A
/// folder with a file val_annotations.txt has lines that begin with a file, a tab and its class, and the files in its
/// folder `images`, as Tiny ImageNet has; a folder `test` that has only a folder `images`, which is no class, is
/// ignored. So are names that begin with a dot. Files come in the order of classes and then of their paths.
///
/// Warns in the log of images of formats that are not decoded, with their number, and of classes without images. Throws
/// DataError for a folder that cannot be read or is no class of `train`, and for a split without images.
ImageFolders find_images(const std::filesystem::path& root);

/// Moves a share of the images of each class, rounded, from `train` to `test`: at least one, and not the last one.
/// Which ones is drawn by `seed`. Both keep their order.
void hold_out_images(double share, std::int64_t seed, ImageFolders& folders);

}  // namespace phalanx
