// SPDX-License-Identifier: Apache-2.0
#include "engine/html/hang_timeline.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "engine/html/chart.h"
#include "engine/html/page.h"
#include "framework/base/escape_html.h"
#include "framework/base/text.h"
#include "framework/observe/hang/explain.h"

namespace phalanx {
namespace {

// Units of the view box.
constexpr double kPictureWidth = 960, kPlotLeft = 76, kPlotRight = 936, kPlotTop = 10;
constexpr double kRowHeight = 30, kBarHeight = 18;
constexpr double kBreak = 0.55;               // share of the width that is left of the break
constexpr double kLeastRatio = 4;             // of the wait and the time before it, from which the axis has a break
constexpr double kLeastWidth = 1.5;           // of a bar
constexpr double kCharacter = 7.2;            // approximate width of a character in a bar
constexpr std::size_t kShownOperations = 16;  // of each rank before the wait, on average
constexpr std::size_t kMaxRows = 32;
constexpr double kLeastTime = 1e-6;  // seconds that an axis shows at least

using Process = RankPicture::Process;

bool contains(const std::vector<int>& ranks, int rank) { return std::ranges::find(ranks, rank) != ranks.end(); }

// Maps times to positions. Times before the wait, and the wait itself, may have different scales.
class Axis {
 public:
  Axis(const JobPicture& job, const std::vector<int>& waiting) : end_(job.taken) {
    std::vector<double> starts;
    knee_ = end_;
    for (const auto& rank : job.ranks) {
      if (!contains(waiting, rank.rank)) continue;
      const double since = current_operation(rank)->started;
      if (since > 0) knee_ = std::min(knee_, since);
    }
    for (const auto& rank : job.ranks) {
      for (const auto& operation : rank.operations) {
        if (operation.started > 0 && operation.started < knee_) starts.push_back(operation.started);
      }
    }
    const auto shown = std::min(starts.size(), kShownOperations * std::max<std::size_t>(job.ranks.size(), 1));
    std::ranges::sort(starts, std::greater());
    begin_ = shown > 0 ? starts[shown - 1] : knee_;
    begin_ = std::min(begin_, std::min(knee_, end_) - kLeastTime);
    broken_ = knee_ < end_ && end_ - knee_ > kLeastRatio * (knee_ - begin_);
  }

  double begin() const { return begin_; }
  double end() const { return end_; }
  bool waits() const { return knee_ < end_; }
  bool broken() const { return broken_; }
  double knee_position() const { return position(knee_); }

  double position(double time) const {
    const double middle = kPlotLeft + kBreak * (kPlotRight - kPlotLeft);
    if (!broken_) return scaled(time, begin_, end_, kPlotLeft, kPlotRight);
    return time < knee_ ? scaled(time, begin_, knee_, kPlotLeft, middle)
                        : scaled(time, knee_, end_, middle, kPlotRight);
  }

  // Returns the labels of the axis and their positions. Times count from the beginning of the wait, or to the end.
  std::vector<std::pair<double, std::string>> labels() const {
    const double zero = waits() ? knee_ : end_;
    std::vector<std::pair<double, std::string>> labels;
    const auto add = [&](double low, double high, int count) {
      for (const double time : ticks(low, high, count)) {
        const std::string number = time == 0 ? "0" : (time > 0 ? "+" : "−") + short_number(std::abs(time));
        labels.emplace_back(position(zero + time), number + " s");
      }
    };
    if (broken_) {
      add(begin_ - zero, 0, 4);
      add(std::min(kLeastTime, end_ - zero), end_ - zero, 3);
    } else {
      add(begin_ - zero, end_ - zero, 7);
    }
    return labels;
  }

 private:
  static double scaled(double time, double low, double high, double from, double to) {
    const double share = (time - low) / std::max(high - low, kLeastTime);
    return from + (to - from) * (std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0);
  }

  double begin_ = 0, knee_ = 0, end_ = 0;
  bool broken_ = false;
};

// Returns what a rank does, in a few words.
std::string doing(const RankPicture& rank) {
  if (rank.state == Process::kStopped || rank.state == Process::kGone) return to_string(rank.state);
  return rank.activity;
}

class Timeline {
 public:
  explicit Timeline(const JobPicture& job)
      : job_(job), standing_(standing_ranks(job)), axis_(job, standing_.waiting), difference_(first_difference(job)) {
    choose_rows();
    choose_colors();
  }

  std::string html() const {
    std::string text = legend() + "<div class=\"wide\">" + svg() + "</div>\n";
    const int hidden = job_.size - static_cast<int>(rows_.size());
    if (hidden > 0) text += "<p class=\"about\">" + std::to_string(hidden) + " more ranks are not drawn.</p>\n";
    return "<div class=\"timeline\">\n" + text + "</div>\n" + table();
  }

 private:
  void choose_rows() {
    const auto add = [&](const auto& wanted) {
      for (int rank = 0; rank < job_.size && rows_.size() < kMaxRows; ++rank) {
        if (wanted(rank)) rows_.insert(rank);
      }
    };
    add([&](int rank) { return contains(standing_.awaited, rank); });
    if (difference_) {
      for (const auto& request : difference_->requests) {
        if (rows_.size() < kMaxRows) rows_.insert(request.ranks.front());
      }
    }
    add([&](int rank) { return !contains(standing_.waiting, rank); });
    add([](int) { return true; });
  }

  // Operations of a kind have a color. Two colors are reserved for ranks that wait and for
  // ranks that have not come.
  void choose_colors() {
    static const std::vector<const char*> kColors{"s0", "s2", "s5", "s6", "s7", "s3"};
    for (const int row : rows_) {
      const auto* rank = job_.find(row);
      if (rank == nullptr) continue;
      for (const auto& operation : rank->operations) {
        if (!is_drawn(operation) || colors_.contains(operation.op)) continue;
        const std::size_t index = std::min(colors_.size(), kColors.size() - 1);
        colors_[operation.op] = kColors[index];
      }
    }
  }

  // Returns the end of the bar of an operation.
  double end_of(const PicturedOperation& operation) const {
    if (operation.finished > 0) return operation.finished;
    return operation.state == "running" || operation.state == "failed" ? axis_.end() : operation.started;
  }

  // Returns the operation in which a rank waits; nullptr if it does not wait.
  const PicturedOperation* awaited_operation(const RankPicture& rank) const {
    return contains(standing_.waiting, rank.rank) ? current_operation(rank) : nullptr;
  }

  // Operations that ended before the axis begins are not drawn.
  bool is_drawn(const PicturedOperation& operation) const {
    return operation.started > 0 && end_of(operation) >= axis_.begin();
  }

  bool differs(const PicturedOperation& operation) const {
    return difference_ && operation.group == difference_->group && operation.sequence == difference_->sequence;
  }

  std::string legend() const {
    std::string text = "<div class=\"legend\">";
    const auto entry = [&](const std::string& color, const std::string& words) {
      text += "<span class=\"" + color + "\"><i></i>" + escape_html(words) + "</span>";
    };
    for (const auto& [op, color] : colors_) entry(color, op);
    if (!standing_.waiting.empty()) entry("s1", "waits");
    if (!standing_.awaited.empty()) entry("s4", "has not come");
    if (difference_) entry("differs", "ranks differ");
    return text + "</div>\n";
  }

  double bottom() const { return kPlotTop + kRowHeight * static_cast<double>(rows_.size()); }

  std::string svg() const {
    std::string text =
        format_text("<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"", kPictureWidth, bottom() + 26) +
        "The last operations of each rank over time\">" + axes();
    double top = kPlotTop;
    for (const int rank : rows_) {
      text += row(rank, top);
      top += kRowHeight;
    }
    if (axis_.broken()) {
      const double x = axis_.knee_position();
      text += format_text("<path class=\"break\" d=\"M%.1f %.1fl5 5l-10 5l5 5\"/>", x, bottom() - 4);
    }
    return text + "</svg>";
  }

  std::string axes() const {
    std::string text = "<g class=\"axes\">";
    double last = -kPictureWidth;
    for (const auto& [x, label] : axis_.labels()) {
      text += format_text("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%g\" y2=\"%g\"/>", x, x, kPlotTop, bottom());
      if (x - last < 56) continue;  // would touch the label before
      text += format_text("<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">", x, bottom() + 20) + label + "</text>";
      last = x;
    }
    return text + "</g>";
  }

  std::string row(int number, double top) const {
    const bool awaited = contains(standing_.awaited, number);
    std::string text = "<g class=\"row" + std::string(awaited ? " awaited" : "") + "\">" +
                       format_text("<text x=\"%g\" y=\"%g\" text-anchor=\"end\">rank %d</text>", kPlotLeft - 8,
                                   top + kRowHeight / 2 + 5, number);
    const auto* rank = job_.find(number);
    if (rank != nullptr) {
      for (const auto& operation : rank->operations)
        text += bar(operation, &operation == awaited_operation(*rank), top);
    }
    if (awaited) text += absence(rank, top);
    return text + "</g>\n";
  }

  std::string bar(const PicturedOperation& operation, bool waits, double top) const {
    if (!is_drawn(operation)) return "";
    const bool marked = differs(operation);
    const std::string what = operation.what.empty() ? operation.call : operation.what;
    const std::string name = operation.op + " #" + std::to_string(operation.sequence);
    const double until = end_of(operation);
    return box(waits ? "s1" : colors_.at(operation.op), marked, operation.started, until, top,
               marked  ? name + ": " + operation.call
               : waits ? name
                       : "",
               operation.name() + ": " + what + ", " + format_text("%.3g s", std::max(0.0, until - operation.started)) +
                   (operation.place.empty() ? "" : ", issued at " + operation.place));
  }

  // Draws what a rank does instead of coming.
  std::string absence(const RankPicture* rank, double top) const {
    if (rank == nullptr) return box("s4", false, axis_.begin(), axis_.end(), top, "nothing is known of it", "");
    const std::string words = rank->activity.empty() ? "has not come" : doing(*rank);
    double since = rank->activity_since;
    for (const auto& operation : rank->operations) {
      since = std::max({since, operation.finished, operation.started});  // it has come to these
    }
    return box("s4", false, since > 0 ? since : axis_.begin(), axis_.end(), top, words, words);
  }

  std::string box(const std::string& type, bool marked, double from, double until, double top, const std::string& words,
                  const std::string& title) const {
    const double left = axis_.position(from), width = std::max(axis_.position(until) - left, kLeastWidth);
    const double y = top + (kRowHeight - kBarHeight) / 2;
    std::string text = "<g class=\"" + type + (marked ? " differs" : "") + "\">";
    if (!title.empty()) text += "<title>" + escape_html(title) + "</title>";
    text +=
        format_text("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%g\" rx=\"2\"/>", left, y, width, kBarHeight);
    if (!words.empty() && static_cast<double>(words.size()) * kCharacter + 8 < width) {
      text +=
          format_text("<text x=\"%.1f\" y=\"%.1f\">", left + 6, y + kBarHeight - 5) + escape_html(words) + "</text>";
    }
    return text + "</g>";
  }

  std::string table() const {
    std::vector<std::vector<std::string>> cells{
        {"rank", "host", "process", "state", "doing", "step", "waits in", "for"}};
    for (const int number : rows_) {
      const auto* rank = job_.find(number);
      if (rank == nullptr) {
        cells.push_back({std::to_string(number), "", "", "unknown", "", "", "", ""});
        continue;
      }
      const auto* operation = awaited_operation(*rank);
      const std::string where = rank->activity + (rank->blocked_in.empty() ? "" : ", blocked in " + rank->blocked_in);
      const double since = operation == nullptr ? rank->activity_since : operation->started;
      cells.push_back({std::to_string(number), rank->host, rank->process > 0 ? std::to_string(rank->process) : "",
                       to_string(rank->state), where, rank->process > 0 ? std::to_string(rank->step) : "",
                       operation == nullptr ? "" : operation->name(),
                       since > 0 ? format_text("%.0f s", std::floor(std::max(0.0, job_.taken - since))) : ""});
    }
    return to_table(without_empty_columns(cells));
  }

  static std::vector<std::vector<std::string>> without_empty_columns(
      const std::vector<std::vector<std::string>>& cells) {
    std::vector<std::vector<std::string>> kept(cells.size());
    for (std::size_t column = 0; column < cells.front().size(); ++column) {
      const auto is_empty = [&](const auto& row) { return row[column].empty(); };
      if (std::all_of(cells.begin() + 1, cells.end(), is_empty)) continue;
      for (std::size_t i = 0; i < cells.size(); ++i) kept[i].push_back(cells[i][column]);
    }
    return kept;
  }

  const JobPicture& job_;
  const Standing standing_;
  const Axis axis_;
  const std::optional<Difference> difference_;
  std::set<int> rows_;                         // the ranks that are drawn
  std::map<std::string, std::string> colors_;  // by operation
};

}  // namespace

std::string to_hang(const JobPicture& picture) {
  return "<p class=\"note\">" + escape_html(explain(picture)) + ".</p>\n" + Timeline(picture).html();
}

std::string to_hang_page(const JobPicture& picture, const std::string& source) {
  return to_page("Why it stands still", "<h1>Why it stands still</h1>\n<p class=\"about\">" + escape_html(source) +
                                            "</p>\n" + to_hang(picture));
}

}  // namespace phalanx
