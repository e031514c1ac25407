// SPDX-License-Identifier: Apache-2.0
#include "datasets/digits/glyphs.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <sstream>
#include <string>

namespace phalanx {
namespace {

using Handwriting = std::array<std::vector<Glyph>, kDigits>;

// Three ways of writing each digit. Points are in percent of the width and of the height, from the top left. The pen
// runs smoothly through them up to a '|', so a corner is made of two strokes that meet.
constexpr const char* kControlPoints[kDigits][3] = {
    {
        "50 0  15 15  2 50  15 86  50 100  85 86  98 50  85 15  50 0",
        "55 0  28 20  20 55  30 90  50 100  72 85  80 45  72 12  55 0",
        "75 10  40 2  10 30  5 70  35 100  75 90  97 55  90 20  60 2  45 10",
    },
    {
        "50 0  50 50  50 100",
        "25 25  40 15  55 0 | 55 0  53 50  52 100",
        "20 28  40 16  55 0 | 55 0  55 50  55 100 | 20 100  55 100  88 100",
    },
    {
        "8 25  25 4  60 0  88 20  80 48  45 75  5 100 | 5 100  50 100  98 98",
        "10 20  35 0  75 5  88 30  65 62  30 92  8 95  10 78  35 82  65 98  98 90",
        "5 8  45 3  90 6 | 90 6  50 50  5 97 | 5 97  50 95  98 100",
    },
    {
        "10 14  40 0  80 8  85 32  60 46  35 48 | 35 48  70 50  95 70  80 94  45 100  5 88",
        "10 3  50 2  90 2 | 90 2  65 22  42 40 | 42 40  75 43  95 66  80 93  40 100  5 90",
        "15 10  50 0  82 15  75 38  45 50  50 50  85 60  92 82  60 100  10 95",
    },
    {
        "25 0  18 30  8 58 | 8 58  50 56  98 54 | 72 5  70 50  66 100",
        "70 0  40 32  3 66 | 3 66  50 67  98 66 | 70 0  70 50  70 100",
        "12 2  8 30  20 50  50 52  82 44 | 85 0  82 44  80 100",
    },
    {
        "20 2  55 2  92 0 | 20 2  17 22  14 44 | 14 44  50 36  88 50  92 78  60 100  8 92",
        "90 2  55 5  25 12  18 35  45 45  80 58  85 82  50 100  8 94",
        "88 0  50 2  28 3 | 28 3  20 25  16 48 | 16 48  55 44  85 60  78 88  40 100  10 96",
    },
    {
        "78 2  40 20  12 55  15 88  50 100  85 88  88 65  60 52  30 58  12 75",
        "55 0  28 30  15 65  25 95  60 100  85 82  75 60  45 58  20 72",
        "90 8  55 2  20 25  5 60  20 94  55 100  88 85  85 60  50 50  10 65",
    },
    {
        "5 4  50 3  95 2 | 95 2  65 50  40 100",
        "5 4  50 3  92 2 | 92 2  62 50  42 100 | 30 52  60 50  92 48",
        "6 22  7 10  10 4 | 10 4  50 6  93 2 | 93 2  70 35  58 100",
    },
    {
        "82 14  50 0  17 16  27 37  55 50  88 70  78 95  45 100  12 86  22 62  55 46  82 28  82 14",
        "50 0  20 10  20 35  50 46  80 35  80 10  50 0 | 50 46  12 60  10 87  50 100  90 87  88 60  50 46",
        "90 2  50 3  18 18  40 42  75 65  78 92  45 100  15 85  35 58  70 35  90 2",
    },
    {
        "82 20  50 0  15 12  10 38  40 52  72 40  85 12 | 85 12  80 50  74 100",
        "85 25  60 2  25 5  10 30  30 50  65 45  85 20  86 55  72 90  40 100  12 92",
        "78 8  40 2  12 25  30 47  62 40  80 8 | 80 8  68 55  42 100",
    },
};

Glyph parse(const std::string& text) {
  Glyph glyph(1);
  std::istringstream words(text);
  for (std::string x; words >> x;) {
    if (x == "|") {
      glyph.emplace_back();
    } else if (std::string y; words >> y) {
      glyph.back().push_back({std::stof(x) / 100, std::stof(y) / 100});
    }
  }
  return glyph;
}

// Evaluates a uniform Catmull-Rom spline between b and c.
Point spline(const Point& a, const Point& b, const Point& c, const Point& d, float t) {
  const auto blend = [&](float Point::* k) {
    const float third = 3 * (b.*k - c.*k) + d.*k - a.*k;
    const float second = 2 * a.*k - 5 * b.*k + 4 * c.*k - d.*k;
    return b.*k + 0.5f * t * (c.*k - a.*k + t * (second + t * third));
  };
  return {blend(&Point::x), blend(&Point::y)};
}

Stroke smooth(const Stroke& control) {
  constexpr int kSteps = 4;  // per pair of points, which are about five pixels apart
  Stroke dense;
  for (std::size_t i = 0; i + 1 < control.size(); ++i) {
    const auto& before = control[i == 0 ? 0 : i - 1];
    const auto& after = control[std::min(i + 2, control.size() - 1)];
    for (int step = 0; step < kSteps; ++step) {
      dense.push_back(spline(before, control[i], control[i + 1], after, static_cast<float>(step) / kSteps));
    }
  }
  dense.push_back(control.back());
  return dense;
}

Handwriting dense_strokes() {
  Handwriting by_digit;
  for (std::size_t digit = 0; digit < kDigits; ++digit) {
    for (const char* text : kControlPoints[digit]) {
      auto& glyph = by_digit[digit].emplace_back(parse(text));
      for (auto& stroke : glyph) stroke = smooth(stroke);
    }
  }
  return by_digit;
}

}  // namespace

const std::vector<Glyph>& handwriting(int digit) {
  static const Handwriting by_digit = dense_strokes();
  TORCH_CHECK(digit >= 0 && digit < kDigits, "no digit: ", digit);
  return by_digit[static_cast<std::size_t>(digit)];
}

}  // namespace phalanx
