# SPDX-License-Identifier: Apache-2.0
"""Coordinate systems in SVG, for the scripts that draw the measurements of runs."""

import html
import json
import math

INK, GRID = "#555", "#eee"


def read_metrics(folder, split):
    """Returns the records of one split of a run, in order."""
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line for line in lines if line["split"] == split]


def text(x, y, words, anchor="start", style=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {style}>{html.escape(words)}</text>'


def document(width, height, elements):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
            'font-size="12"><rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(elements) + "\n</svg>\n")


def round_ticks(low, high, count=5):
    """Returns about `count` round numbers from `low` to `high`."""
    rough = (high - low) / (count - 1)
    step = 10 ** math.floor(math.log10(rough))
    step *= max(factor for factor in (1, 2, 5) if factor * step <= rough)
    return [step * i for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


class Panel:
    """One coordinate system: x from 0 to `most`, y between the two `limits`, optionally logarithmic."""

    def __init__(self, corner, size, most, limits, logarithmic=False):
        self.left, self.top = corner
        self.width, self.height = size
        self.most, self.logarithmic = most, logarithmic
        self.low, self.high = map(self.scale, limits)

    def scale(self, value):
        return math.log10(value) if self.logarithmic else value

    def x(self, value):
        return self.left + self.width * value / self.most

    def y(self, value):
        place = (self.scale(value) - self.low) / (self.high - self.low)
        return self.top + self.height * (1 - min(1, max(0, place)))

    def frame(self, x_label, y_label, y_ticks, y_format="{:g}"):
        right, bottom = self.left + self.width, self.top + self.height
        yield (f'<rect x="{self.left}" y="{self.top}" width="{self.width}" height="{self.height}" fill="none" '
               'stroke="#888"/>')
        for value in y_ticks:
            if self.low <= self.scale(value) <= self.high:
                y = self.y(value)
                yield f'<line x1="{self.left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GRID}"/>'
                yield text(self.left - 6, y + 4, y_format.format(value), "end")
        for value in round_ticks(0, self.most):
            yield text(self.x(value), bottom + 16, f"{value:,.6g}", "middle")
        yield text(self.left + self.width / 2, bottom + 32, x_label, "middle", f'fill="{INK}"')
        x, y = self.left - 44, self.top + self.height / 2
        yield text(x, y, y_label, "middle", f'fill="{INK}" transform="rotate(-90 {x} {y:.1f})"')

    def curve(self, points, color, dash="", width=2):
        """Returns a curve through `points`, which are pairs (x, y)."""
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        return f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"{dashes(dash)}/>'


def dashes(dash):
    return f' stroke-dasharray="{dash}"' if dash else ""
