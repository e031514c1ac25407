// SPDX-License-Identifier: Apache-2.0
#include "tools/schedule/drawing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

namespace phalanx {
namespace {

using pipeline::Action;
using pipeline::Schedule;
using pipeline::Span;
using pipeline::Timeline;

struct ActionStyle {
  char letter;
  const char* name;
  const char* color;  // a second stage of the rank has a lighter shade
};

// In the order of Action::Kind.
constexpr std::array<ActionStyle, 4> kActionStyles{
    ActionStyle{'F', "forward", "#4e79a7"}, ActionStyle{'D', "backward", "#59a14f"},
    ActionStyle{'B', "input_gradient", "#76b7b2"}, ActionStyle{'W', "weight_gradient", "#f28e2b"}};

const ActionStyle& style_of(const Action& action) { return kActionStyles[static_cast<std::size_t>(action.kind)]; }

// Returns the length of the shortest action, which is drawn as a cell with room for a letter and a number.
double shortest(const Timeline& timeline) {
  double length = timeline.length;
  for (const auto& spans : timeline.spans) {
    for (const auto& span : spans) {
      if (span.end > span.begin) length = std::min(length, span.end - span.begin);
    }
  }
  return length;
}

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

}  // namespace

std::string to_text(const Schedule& schedule, const Timeline& timeline, int width) {
  const int digits = schedule.micro_batches > 10 ? 2 : 1, label = 9;
  const double scale = (digits + 1) / std::max(shortest(timeline), 1e-9);  // letters per unit of time
  std::vector<std::string> lines;
  for (const auto& spans : timeline.spans) {
    std::string line;
    for (const auto& span : spans) {
      const auto begin = static_cast<std::size_t>(std::lround(span.begin * scale));
      const auto end = static_cast<std::size_t>(std::lround(span.end * scale));
      if (line.size() < begin) line.append(begin - line.size(), '.');
      std::string cell = style_of(span.action).letter + std::to_string(span.action.micro_batch);
      cell.resize(end > begin ? end - begin : 0, ' ');
      line += cell;
    }
    lines.push_back(line);
  }
  const auto all = std::ranges::max(lines, {}, &std::string::size).size();
  const auto room = static_cast<std::size_t>(std::max(width - label, digits + 1));
  std::string text;
  for (std::size_t begin = 0; begin < all; begin += room) {
    if (begin > 0) text += "\n";
    for (std::size_t rank = 0; rank < lines.size(); ++rank) {
      std::string name = "rank " + std::to_string(rank);
      name.resize(static_cast<std::size_t>(label), ' ');
      lines[rank].resize(all, '.');
      text += name + lines[rank].substr(begin, room) + "\n";
    }
  }
  return text;
}

std::string to_svg(const Schedule& schedule, const Timeline& timeline) {
  constexpr double kRow = 26, kLeft = 56, kTop = 34, kGap = 3;
  const double scale = std::clamp(24 / std::max(shortest(timeline), 1e-9), 1.0, 2000 / std::max(timeline.length, 1.0));
  const double width = kLeft + timeline.length * scale + 10;
  const double height = kTop + kRow * static_cast<double>(timeline.spans.size()) + 8;
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(width) + "\" height=\"" +
                    number(height) + "\" viewBox=\"0 0 " + number(width) + " " + number(height) +
                    "\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" "
                    "fill=\"#fff\"/>\n<text x=\"4\" y=\"16\" font-weight=\"bold\">" +
                    schedule.name + "</text>\n";
  double legend = 90;
  for (const auto& look : kActionStyles) {
    const bool used = std::ranges::any_of(timeline.spans, [&](const auto& spans) {
      return std::ranges::any_of(spans, [&](const Span& span) { return &style_of(span.action) == &look; });
    });
    if (!used) continue;
    std::string name = look.name;
    std::ranges::replace(name, '_', ' ');
    svg += "<rect x=\"" + number(legend) + "\" y=\"7\" width=\"11\" height=\"11\" fill=\"" + look.color +
           "\"/><text x=\"" + number(legend + 15) + "\" y=\"16\">" + name + "</text>\n";
    legend += 30 + 7 * static_cast<double>(name.size());
  }
  for (std::size_t rank = 0; rank < timeline.spans.size(); ++rank) {
    const double y = kTop + kRow * static_cast<double>(rank);
    svg += "<text x=\"4\" y=\"" + number(y + 15) + "\">rank " + std::to_string(rank) + "</text>\n<rect x=\"" +
           number(kLeft) + "\" y=\"" + number(y) + "\" width=\"" + number(timeline.length * scale) + "\" height=\"" +
           number(kRow - kGap) + "\" fill=\"#eee\"/>\n";
    const auto stages = schedule.stages_of(static_cast<int>(rank));
    for (const auto& span : timeline.spans[rank]) {
      const double x = kLeft + span.begin * scale, wide = (span.end - span.begin) * scale;
      if (wide <= 0) continue;
      const bool later = span.action.stage != stages.front();
      svg += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(wide - 0.5) + "\" height=\"" +
             number(kRow - kGap) + "\" fill=\"" + style_of(span.action).color + "\"" +
             (later ? " fill-opacity=\"0.6\"" : "") + "/><text x=\"" + number(x + wide / 2) + "\" y=\"" +
             number(y + 15) + "\" text-anchor=\"middle\" fill=\"" + (later ? "#000" : "#fff") + "\">" +
             std::to_string(span.action.micro_batch) + "</text>\n";
    }
  }
  return svg + "</svg>\n";
}

std::string to_json(const Schedule& schedule, const Timeline& timeline) {
  nlohmann::ordered_json json{{"name", schedule.name},
                              {"ranks", schedule.ranks},
                              {"stages", schedule.stages},
                              {"micro_batches", schedule.micro_batches},
                              {"length", timeline.length},
                              {"bubble", timeline.bubble},
                              {"bubble_without_stop", timeline.bubble_without_stop},
                              {"live", timeline.live},
                              {"actions", nlohmann::ordered_json::array()}};
  for (const auto& spans : timeline.spans) {
    auto own = nlohmann::ordered_json::array();
    for (const auto& span : spans) {
      own.push_back({{"kind", style_of(span.action).name},
                     {"stage", span.action.stage},
                     {"micro_batch", span.action.micro_batch},
                     {"begin", span.begin},
                     {"end", span.end}});
    }
    json["actions"].push_back(std::move(own));
  }
  return json.dump(1) + "\n";
}

}  // namespace phalanx
