// SPDX-License-Identifier: Apache-2.0
// Tests files of numbers: csv and numpy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/files/npy_file.h"
#include "datasets/testing/idx_files.h"
#include "datasets/testing/splits.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using testing::fresh_folder;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

std::string error(const std::string& yaml) {
  try {
    testing::load_splits(yaml);
    return "loaded without an error";
  } catch (const Error& error) {
    return error.what();
  }
}

class Csv : public ::testing::Test {
 protected:
  void write(const std::string& train, const std::string& test) {
    std::ofstream(root_ / "train.csv") << train;
    std::ofstream(root_ / "test.csv") << test;
  }
  std::string yaml(const std::string& more) const { return "{name: csv, root: " + root_.string() + more + "}"; }
  fs::path root_ = fresh_folder("csv");
};

TEST_F(Csv, ReadsClassesAndNumbers) {
  write("height,kind,width\r\n1.5, 2 ,-3e1\r\n+4,0,5\r\n", "7,1,8\n\n");
  const auto splits = testing::load_splits(yaml(", target: '1', classes: 3"));
  EXPECT_EQ(splits.train->size(), 2);
  EXPECT_EQ(splits.test->size(), 1) << "without names";
  EXPECT_EQ(splits.train->spec().task, "classification");
  Batch batch;
  splits.train->gather(std::array<std::int64_t, 2>{1, 0}, 0, batch);
  const auto* values = batch.inputs[0].const_data_ptr<float>();
  EXPECT_THAT((std::vector<float>{values, values + 4}), ElementsAre(4, 5, 1.5, -30));
  EXPECT_EQ(batch.targets[0].const_data_ptr<std::int64_t>()[1], 2);
  EXPECT_EQ(splits.train->label(0), 2);
  write("height,kind,width\n1,2,3\n", "kind,height,width\n5,6,7\n");
  const auto by_name = testing::load_splits(yaml(", target: width"));
  EXPECT_EQ(by_name.train->spec().task, "regression");
  by_name.test->gather(std::array<std::int64_t, 1>{0}, 0, batch);
  EXPECT_EQ(batch.targets[0].const_data_ptr<float>()[0], 7);
}

TEST_F(Csv, SaysWhatIsWrongWhere) {
  const auto test = [&](const std::string& text, const std::string& more, const std::string& why) {
    write(text, "1,2\n");
    EXPECT_THAT(error(yaml(more)), HasSubstr(why)) << text;
  };
  test("1,2\n3,x\n", "", "train.csv: line 2, column 1: \"x\" is not a number, but the column has numbers");
  test("1,2\n3,nan\n", "", "train.csv: line 2, column 1: the target is missing");
  test("1,2\n1e39,3\n", "", "train.csv: line 2, column 0: \"1e39\": 1e+39 is not a finite number in float32");
  test("1,2\n3\n4,5\n6,7\n", "", "train.csv: line 2: has 1 fields, and most lines have 2");
  test("1,2\n3,7\n", ", classes: 3", "train.csv: line 2, column 1: class 7, expected 0 to 2 (dataset.classes)");
  test("1,2\n3,0.5\n", ", classes: 3", "class 0.5");
  test("a,b\n3,1\n", ", target: c", "dataset.target: \"c\" is not a column of");
  test("1\n2\n", "", "none is left for the inputs");
  test("a,b\n", "", "has a header, but no rows below it");
  test("1,2,3\n", "", "test.csv: has no column \"2\", which the training table has");
  test("1,2\n", ", separator: ab", "dataset.separator: \"ab\" is not one character");
}

TEST_F(Csv, ReadsATableOfPeopleInOneFile) {
  // The training part of the split has rows of both classes and of both categories.
  std::string people = "\"\",\"age\",\"sex\",\"alive\"\n";
  for (int i = 0; i < 20; ++i) {
    people += "\"" + std::to_string(i) + "\"," + (i % 5 == 0 ? "NA" : std::to_string(20 + i)) +
              (i % 2 == 0 ? ",\"male\",\"no\"\n" : ",\"female\",\"yes\"\n");
  }
  std::ofstream(root_ / "people.csv") << people;
  const auto splits = testing::load_splits(yaml(", file: people.csv, missing: median, standardize: true"));
  EXPECT_EQ(splits.train->size(), 16);
  EXPECT_EQ(splits.test->size(), 4);
  EXPECT_THAT(splits.train->spec().inputs[0].shape, ElementsAre(3)) << "age, sex=female, sex=male";
  EXPECT_EQ(splits.train->spec().targets[0].classes, 2);
  EXPECT_THAT(splits.fitted, HasSubstr("\"sex=female\""));
}

TEST_F(Csv, MatchesTestColumnsByName) {
  write("a,b,y\n1,-10,1\n2,-20,0\n", "b,a,y\n-30,3,1\n");
  Batch batch;
  testing::load_splits(yaml(", classes: 2")).test->gather(std::array<std::int64_t, 1>{0}, 0, batch);
  const auto* values = batch.inputs[0].const_data_ptr<float>();
  EXPECT_THAT((std::vector<float>{values, values + 2}), ElementsAre(3, -30));
}

TEST_F(Csv, TakesFieldsForColumnsFromTheConfig) {
  write("a;b;y\n1,5;?;u\n2,5;3,5;v\n", "b;y;a\n9;v;8\n");
  const auto splits = testing::load_splits(yaml(", decimal: ',', missing_values: ['?'], columns: {b: {missing: '0'}}"));
  Batch batch;
  splits.train->gather(std::array<std::int64_t, 2>{0, 1}, 0, batch);
  const auto* values = batch.inputs[0].const_data_ptr<float>();
  EXPECT_THAT((std::vector<float>{values, values + 4}), ElementsAre(1.5, 0, 2.5, 3.5));
}

TEST_F(Csv, HasOneMeaningForEachCharacterOfANumber) {
  EXPECT_THAT(error(yaml(", decimal: ',', thousands: ','")), HasSubstr("dataset.thousands: is the same character as"));
}

TEST_F(Csv, HasOneFileOrOneForEachSplit) {
  EXPECT_THAT(error(yaml(", file: a.csv, test: b.csv")), HasSubstr("dataset.file: has the rows of all splits"));
  write("a,y\n1,2\n", "a,y\n3,4\n");
  std::ofstream(root_ / "v.csv") << "y,a\n5,6\n7,8\n";
  EXPECT_EQ(testing::load_splits(yaml(", validation: v.csv")).validation->size(), 2);
}

void write_hex(const fs::path& path, const std::string& hex) {
  testing::Bytes bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  testing::write_plain(path, bytes);
}

// Written by numpy.savez_compressed(file, x=numpy.arange(6, dtype="u1").reshape(3, 2), y=numpy.array([0, 1, 2])) of
// NumPy 2.4.
constexpr const char* kArchive =
    "504b03042d0000000800000021001bfa7d61ffffffffffffffff05001400782e6e70790100100086000000000000004c000000000000"
    "009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a05e536aa8aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416"
    "a402f91ac63a0a469a3a0ab50a64032e06462666165600504b03042d000000080000002100f74012eaffffffffffffffff0500140079"
    "2e6e70790100100098000000000000004c000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a1aea3a09e96"
    "5f54529498179f5f94920a12774bcc294e058a17672416a402f91ac63a9a3a0ab50a14002e06286084d24c501a00504b01022d032d00"
    "00000800000021001bfa7d614c00000086000000050000000000000000000000800100000000782e6e7079504b01022d032d00000008"
    "0000002100f74012ea4c00000098000000050000000000000000000000800183000000792e6e7079504b050600000000020002006600"
    "0000060100000000";

void write_npy(const fs::path& path, std::string header, const std::string& numbers) {
  header.resize(std::max<std::size_t>(54, header.size()), ' ');
  std::ofstream(path, std::ios::binary) << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size())
                                        << '\0' << header << numbers;
}

std::vector<double> values(const NpyArray& array) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < array.size(); ++i) all.push_back(array[i]);
  return all;
}

TEST(Npy, ReadsWhatNumPyWrites) {
  const auto root = fresh_folder("npy");
  write_hex(root / "a.npz", kArchive);
  const auto x = read_npy(root / "a.npz", "x"), y = read_npy(root / "a.npz", "y");
  EXPECT_THAT(x.shape(), ElementsAre(3, 2));
  EXPECT_THAT(values(x), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_TRUE(x.is_of_bytes());
  EXPECT_THAT(values(y), ElementsAre(0, 1, 2));
  EXPECT_THAT([&] { read_npy(root / "a.npz", "z"); },
              ::testing::ThrowsMessage<DataError>(HasSubstr("has no array \"z\"; it has x, y")));
  write_npy(root / "b.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", std::string("\0\0\xc0\x3f", 4));
  EXPECT_THAT(values(read_npy(root / "b.npy")), ElementsAre(1.5));
}

// Each type holds one number: 1.5, -2 or 513.
TEST(Npy, ReadsAllTypesInBothByteOrders) {
  const auto path = fresh_folder("npy_types") / "a.npy";
  for (const auto& [type, little] :
       std::vector<std::pair<std::string, std::string>>{{"f2", std::string("\0\x3e", 2)},
                                                        {"f4", std::string("\0\0\xc0\x3f", 4)},
                                                        {"f8", std::string("\0\0\0\0\0\0\xf8\x3f", 8)},
                                                        {"i2", "\xfe\xff"},
                                                        {"u4", std::string("\x01\x02\0\0", 4)},
                                                        {"i8", "\xfe\xff\xff\xff\xff\xff\xff\xff"}}) {
    const double expected = type[0] == 'f' ? 1.5 : type[0] == 'i' ? -2 : 513;
    const std::string big(little.rbegin(), little.rend());
    for (const bool is_big : {false, true}) {
      write_npy(path,
                std::string("{'descr': '") + (is_big ? '>' : '<') + type + "', 'fortran_order': False, 'shape': (1,)}",
                is_big ? big : little);
      EXPECT_THAT(values(read_npy(path)), ElementsAre(expected)) << type << is_big;
    }
  }
}

TEST(Npy, ReadsArraysInFortranOrder) {
  const auto path = fresh_folder("npy_fortran") / "a.npy";
  write_npy(path, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", "\x01\x02\x03\x04\x05\x06");
  EXPECT_THAT(values(read_npy(path)), ElementsAre(1, 3, 5, 2, 4, 6));
  write_npy(path, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 1, 3)}", "\x01\x02\x03\x04\x05\x06");
  EXPECT_THAT(values(read_npy(path)), ElementsAre(1, 3, 5, 2, 4, 6));
}

TEST(Npy, AsksForAnArrayOfAnArchiveWhateverItsName) {
  const auto root = fresh_folder("npz_without_extension");
  write_hex(root / "arrays", kArchive);
  EXPECT_THAT([&] { read_npy(root / "arrays"); },
              ::testing::ThrowsMessage<DataError>(HasSubstr("name one of its arrays, as FILE:ARRAY: x, y")));
  EXPECT_EQ(testing::load_splits(
                "{name: numpy, root: " + root.string() +
                ", train_inputs: 'arrays:x', train_targets: 'arrays:y', test_inputs: 'arrays:x', test_targets: "
                "'arrays:y'}")
                .train->size(),
            3);
}

TEST(Npy, ComparesAnArrayOfAnArchiveWithItsChecksum) {
  const auto path = fresh_folder("npz_checksum") / "a.npz";
  std::string damaged = kArchive;
  damaged[damaged.rfind("1bfa7d61")] = '2';  // the checksum in the directory
  write_hex(path, damaged);
  EXPECT_THAT([&] { read_npy(path, "x"); },
              ::testing::ThrowsMessage<DataError>(HasSubstr("x.npy does not match its checksum")));
  EXPECT_NO_THROW(read_npy(path, "y"));
}

TEST(Npy, SaysWhatIsWrongWhere) {
  const auto path = fresh_folder("npy_bad") / "a.npy";
  const auto refuses = [&](const std::string& header, const std::string& numbers, const std::string& why) {
    write_npy(path, header, numbers);
    EXPECT_THAT([&] { read_npy(path); }, ::testing::ThrowsMessage<DataError>(HasSubstr(why)));
  };
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", "1234", "byte 64: has 4 bytes of numbers, but its");
  refuses("{'descr': '<c8', 'fortran_order': False, 'shape': (2,)", "", "numbers of type <c8");
  refuses("{'descr': '<f3', 'fortran_order': False, 'shape': (1,)", "123", "numbers of type <f3");
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': x", "1234", "expected a shape");
  refuses("{'descr': '<f4', 'fortran_order': False", "1234", "no 'shape'");
  for (const char* shape : {"(9e9, 3)", "(4611686018427387904, 4)", "(0, 4611686018427387904, 4)"}) {
    write_npy(path, std::string("{'descr':'<f8','fortran_order':False,'shape':") + shape, "");
    EXPECT_THROW(read_npy(path), DataError) << shape;
  }
  std::ofstream(path) << "something else";
  EXPECT_THAT([&] { read_npy(path); }, ::testing::ThrowsMessage<DataError>(HasSubstr("byte 0: not a NumPy array")));
  std::string torn = kArchive;
  write_hex(path, torn.substr(0, torn.size() - 20));
  EXPECT_THAT([&] { read_npy(path, "x"); }, ::testing::ThrowsMessage<DataError>(HasSubstr("not a complete .npz")));
  torn[150] = torn[150] == '0' ? '1' : '0';
  torn[151] = torn[151] == '0' ? '1' : '0';
  write_hex(path, torn);
  EXPECT_THAT([&] { read_npy(path, "x"); }, ::testing::ThrowsMessage<DataError>(HasSubstr("a.npy: byte")));
}

TEST(Numpy, RefusesNumbersThatAreNotFiniteInSamples) {
  const auto root = fresh_folder("numpy_nan");
  const std::string one("\0\0\x80\x3f", 4), nan("\0\0\xc0\x7f", 4);
  const char* const samples = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1)}";
  write_npy(root / "x.npy", samples, one + nan);
  write_npy(root / "y.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", one + one);
  const auto yaml = "{name: numpy, root: " + root.string() +
                    ", train_inputs: x.npy, train_targets: y.npy, test_inputs: x.npy, test_targets: y.npy}";
  EXPECT_THAT(error(yaml), HasSubstr("x.npy: sample 1: nan is not a finite number in float32"));
  write_npy(root / "x.npy", samples, one + one);
  EXPECT_EQ(testing::load_splits(yaml).train->size(), 2);
}

TEST(Numpy, MakesSamplesOfArrays) {
  const auto root = fresh_folder("numpy");
  write_hex(root / "a.npz", kArchive);
  const auto splits =
      testing::load_splits("{name: numpy, root: " + root.string() +
                           ", classes: 3, train_inputs: 'a.npz:x', train_targets: 'a.npz:y', test_inputs: 'a.npz:x',"
                           " test_targets: 'a.npz:y'}");
  Batch batch;
  splits.train->gather(std::array<std::int64_t, 1>{2}, 0, batch);
  EXPECT_FLOAT_EQ(batch.inputs[0].const_data_ptr<float>()[1], 5 / 255.0F) << "bytes are images";
  EXPECT_EQ(batch.targets[0].const_data_ptr<std::int64_t>()[0], 2);
  EXPECT_THAT(error("{name: numpy, root: " + root.string() +
                    ", classes: 2, train_inputs: 'a.npz:x', train_targets: 'a.npz:y', test_inputs: 'a.npz:x',"
                    " test_targets: 'a.npz:y'}"),
              HasSubstr("target 2 is 2"));
}

}  // namespace
}  // namespace phalanx
