// SPDX-License-Identifier: Apache-2.0
#include "framework/base/registry.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/base/config/config.h"

namespace phalanx {
namespace {

struct CircleConfig {
  double radius = 1;
  template <class V>
  void visit(V& v) {
    v("radius", radius, "from the centre", config::above(0));
  }
};
struct SquareConfig {
  std::int64_t side = 2;
  template <class V>
  void visit(V& v) {
    v("side", side, "length");
  }
};

// The arguments of the product are forwarded: a reference, and a value that cannot be copied.
using Shapes = Registry<double(int& calls, std::unique_ptr<double> scale)>;
const bool registry_test_registered =
    Shapes::global().add<SquareConfig>("square", "four sides",
                                       [](const SquareConfig& config, int& calls, std::unique_ptr<double> scale) {
                                         ++calls;
                                         return static_cast<double>(config.side) * *scale;
                                       }) &&
    Shapes::global().add<CircleConfig>("circle", "no sides",
                                       [](const CircleConfig& config, int& calls, std::unique_ptr<double> scale) {
                                         ++calls;
                                         return config.radius * *scale;
                                       });

double make(const Shapes::Choice& choice) {
  int calls = 0;
  const double product = choice.make(calls, std::make_unique<double>(10));
  EXPECT_EQ(calls, 1);
  return product;
}

TEST(Registry, KnowsItsNamesInOrder) {
  ASSERT_TRUE(registry_test_registered);
  EXPECT_EQ(Shapes::global().names(), (std::vector<std::string>{"circle", "square"}));
  EXPECT_EQ(Shapes::Choice().help("square"), "four sides");
}

TEST(Registry, RefusesANameTwice) {
  Registry<int()> registry;
  const auto make = [](const SquareConfig&) { return 1; };
  EXPECT_TRUE(registry.add<SquareConfig>("a", "", make));
  try {
    registry.add<CircleConfig>("a", "", [](const CircleConfig&) { return 2; });
    FAIL() << "accepted";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "registered twice: a");
  }
}

TEST(RegistryChoice, MakesWhatIsSelectedWithItsDefaults) {
  EXPECT_EQ(make(Shapes::Choice("square")), 20);
  EXPECT_EQ(make(Shapes::Choice("circle")), 10);
}

TEST(RegistryChoice, IsAValue) {
  Shapes::Choice choice("square");
  const Shapes::Choice copy = choice;
  struct {
    Shapes::Choice& shape;
    void visit(config::Visitor& v) { v("shape", shape, ""); }
  } root{choice};
  config::load_text(root, "shape: {side: 5}", "t.yaml");
  EXPECT_EQ(make(choice), 50);
  EXPECT_EQ(make(copy), 20);
  choice = copy;
  EXPECT_EQ(make(choice), 20);
}

TEST(RegistryChoice, SelectingResetsToTheDefaults) {
  Shapes::Choice choice("square");
  choice.select("circle");
  EXPECT_EQ(choice.selected(), "circle");
  EXPECT_EQ(make(choice), 10);
}

TEST(RegistryChoice, RefusesWhatIsNotRegistered) {
  EXPECT_THROW(Shapes::Choice("hexagon"), std::out_of_range);
  EXPECT_THROW(Shapes::Choice().help("hexagon"), std::out_of_range);
  Shapes::Choice choice("square");
  EXPECT_THROW(choice.select("hexagon"), std::out_of_range);
  EXPECT_EQ(make(choice), 20) << "a failed select() changes nothing";
}

TEST(RegistryChoice, WithNothingSelectedMakesNothing) {
  int calls = 0;
  EXPECT_THROW(Shapes::Choice().make(calls, nullptr), std::logic_error);
  EXPECT_EQ(calls, 0);
}

struct ShapeTraits {
  std::int64_t sides = 0;
  bool curved = false;
};

struct PolygonConfig {
  std::int64_t sides = 3;
  template <class V>
  void visit(V& v) {
    v("sides", sides, "how many", config::at_least(3));
  }
};

using Figures = Registry<int(), ShapeTraits>;
const bool figures_registered =
    Figures::global().add<CircleConfig>("circle", "no sides", ShapeTraits{.curved = true},
                                        [](const CircleConfig&) { return 1; }) &&
    Figures::global().add<PolygonConfig>(
        "polygon", "some sides", [](const PolygonConfig& config) { return ShapeTraits{.sides = config.sides}; },
        [](const PolygonConfig&) { return 2; });

TEST(RegistryTraits, AreKnownBeforeAProductIsMadeAndFollowItsFields) {
  ASSERT_TRUE(figures_registered);
  EXPECT_TRUE(Figures::Choice("circle").traits().curved);
  Figures::Choice polygon("polygon");
  EXPECT_EQ(polygon.traits().sides, 3);
  struct {
    Figures::Choice& figure;
    void visit(config::Visitor& v) { v("figure", figure, ""); }
  } root{polygon};
  config::load_text(root, "figure: {sides: 5}", "t.yaml");
  EXPECT_EQ(polygon.traits().sides, 5);
  EXPECT_FALSE(polygon.traits().curved);
  EXPECT_EQ(polygon.make(), 2);
  EXPECT_THROW(Figures::Choice().traits(), std::logic_error);
}

// Traits that follow from the class of a product.
struct Color {
  virtual ~Color() = default;
};
struct Red final : Color {
  static constexpr bool kWarm = true;
};
struct Blue final : Color {
  static constexpr bool kWarm = false;
};
struct ColorTraits {
  bool warm = false;
  template <class C>
  static ColorTraits of() {
    return {.warm = C::kWarm};
  }
};

TEST(RegistryTraits, FollowFromTheClassOfTheProductIfTheyCan) {
  Registry<std::shared_ptr<Color>(), ColorTraits> colors;
  colors.add<SquareConfig>("blue", "", [](const SquareConfig&) { return std::make_shared<Blue>(); });
  colors.add<SquareConfig>("red", "", [](const SquareConfig&) { return std::make_shared<Red>(); });
  colors.add<SquareConfig>("mixed", "", ColorTraits{.warm = true}, [](const SquareConfig&) { return nullptr; });
  EXPECT_EQ(colors.names_where(&ColorTraits::warm), (std::vector<std::string>{"mixed", "red"}));
}

TEST(RegistryTraits, SelectNamesByTheirDefaults) {
  EXPECT_EQ(Figures::global().names_where(&ShapeTraits::curved), (std::vector<std::string>{"circle"}));
  EXPECT_EQ(Figures::global().names_where([](const ShapeTraits& traits) { return traits.sides > 2; }),
            (std::vector<std::string>{"polygon"}));
}

}  // namespace
}  // namespace phalanx
