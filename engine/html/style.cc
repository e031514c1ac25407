// SPDX-License-Identifier: Apache-2.0
#include "engine/html/style.h"

namespace phalanx {

// Colors of series can be distinguished by readers who see no red or green, on both backgrounds.
const char* const kStyle = R"css(
:root {
  --ground: #f7f7f5; --card: #ffffff; --ink: #1b1b19; --soft: #6a6963; --line: #e3e2dc; --shade: #0005;
  --c0: #2a78d6; --c1: #e2622b; --c2: #1a9b6c; --c3: #c98a00;
  --c4: #c2458a; --c5: #5b53c9; --c6: #5d7d22; --c7: #7b6a58;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #151514; --card: #1e1e1c; --ink: #f1f0ea; --soft: #a3a198; --line: #33322e; --shade: #000c;
    --c0: #4c93e8; --c1: #e8743f; --c2: #2fae80; --c3: #d39c22;
    --c4: #d9669f; --c5: #8a83e6; --c6: #86a846; --c7: #a8957f;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 36px 0 12px; }
h3 { font-size: 15px; margin: 18px 0 8px; }
.about { color: var(--soft); margin: 0; overflow-wrap: anywhere; }
.subject { margin: 0; overflow-wrap: anywhere; }
.result { margin: 0 0 2px; font-weight: 600; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.note { margin: 12px 0 0; padding: 10px 14px; border-left: 3px solid var(--c1); background: var(--card); }
.note.calm { border-color: var(--c2); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 20px 0 0; }
.tiles div, .chart, .wide, pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.tiles div { padding: 12px 14px; }
.tiles dt { color: var(--soft); font-size: 13px; }
.tiles dd { margin: 0; font-size: 22px; font-weight: 600; font-variant-numeric: tabular-nums; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 370px), 1fr)); gap: 14px; }
.chart { margin: 0; padding: 12px 14px 6px; min-width: 0; }
figcaption { font-weight: 600; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; color: var(--soft); font-size: 13px; min-height: 20px; }
.legend b { color: var(--ink); font-weight: 600; font-variant-numeric: tabular-nums; }
.legend i { display: inline-block; width: 10px; height: 10px; border-radius: 3px; background: var(--s);
  margin-right: 5px; }
.plot { position: relative; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
.axes line { stroke: var(--line); }
.axes text { fill: var(--soft); font-size: 14px; font-variant-numeric: tabular-nums; }
.line path { fill: none; stroke: var(--s); stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.line circle { fill: var(--s); }
/* Stretches with another number of ranks lie over the curves, which stay visible. */
.stretch { pointer-events: none; }
.stretch rect { fill: var(--ink); opacity: 0.07; }
.stretch line { stroke: var(--soft); stroke-dasharray: 2 3; }
.stretch text { fill: var(--soft); font-size: 13px; }
.area { fill: var(--s); stroke: var(--card); stroke-width: 1; }
.s0 { --s: var(--c0); } .s1 { --s: var(--c1); } .s2 { --s: var(--c2); } .s3 { --s: var(--c3); }
.s4 { --s: var(--c4); } .s5 { --s: var(--c5); } .s6 { --s: var(--c6); } .s7 { --s: var(--c7); }
.cursor { stroke: var(--soft); stroke-dasharray: 3 3; pointer-events: none; }
.dot { fill: var(--s); stroke: var(--card); stroke-width: 2; pointer-events: none; }
.tip { position: absolute; pointer-events: none; top: 6px; padding: 6px 10px; border-radius: 6px; font-size: 13px;
  background: var(--ink); color: var(--ground); white-space: nowrap; font-variant-numeric: tabular-nums; z-index: 1; }
.tip i { display: inline-block; width: 8px; height: 8px; border-radius: 2px; background: var(--s); margin-right: 6px; }
/* Shadows at the sides where there is more to scroll to: the grounds that hide them move with the content. */
.wide { overflow-x: auto; background:
  linear-gradient(to right, var(--card) 40%, transparent) left / 56px 100% no-repeat local,
  linear-gradient(to left, var(--card) 40%, transparent) right / 56px 100% no-repeat local,
  linear-gradient(to right, var(--shade), transparent) left / 22px 100% no-repeat scroll,
  linear-gradient(to left, var(--shade), transparent) right / 22px 100% no-repeat scroll, var(--card); }
.narrow { width: fit-content; max-width: 100%; }
.matrix { width: auto; }
.matrix th, .matrix td { padding: 4px 9px; border: 1px solid var(--line); text-align: right; }
.matrix td { min-width: 40px; background: rgba(42, 120, 214, calc(var(--share) * 0.75)); }
.list summary { margin: 14px 0 8px; font-size: 15px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 7px 14px; text-align: right; white-space: nowrap; font-weight: 400;
  border-top: 1px solid var(--line); }
thead th { color: var(--soft); font-size: 13px; border-top: 0; }
th:first-child { text-align: left; }
tbody tr:last-child.sum { font-weight: 600; }
.share { display: flex; height: 14px; border-radius: 4px; overflow: hidden; gap: 2px; margin: 0 0 8px; }
.share + .legend { margin: 0 0 12px; }
.share i { background: var(--s); min-width: 1px; }
.words td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
.timeline .wide { padding: 6px 4px; }
.timeline svg { min-width: 640px; }
.timeline { margin: 0 0 14px; }
.timeline .legend { margin: 14px 0 6px; }
.row text { fill: var(--soft); font-size: 14px; font-variant-numeric: tabular-nums; }
.row rect { fill: var(--s); }
.row g text { fill: #fff; font-size: 12.5px; }
.row .s1 text, .row .s4 text { paint-order: stroke; stroke: #0006; stroke-width: 2px; }
.awaited > text { fill: var(--c4); font-weight: 700; }
.row .differs rect { stroke: var(--ink); stroke-width: 2; }
.legend .differs i { background: none; border: 2px solid var(--ink); }
.break { fill: none; stroke: var(--soft); stroke-width: 1.5; }
pre { margin: 0; padding: 14px; overflow-x: auto; font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
summary { cursor: pointer; margin: 36px 0 12px; font-size: 17px; font-weight: 700; }
)css";

const char* const kScript = R"js(
for (const chart of document.querySelectorAll(".chart")) {
  const { x, y, unit, series } = JSON.parse(chart.querySelector("script").textContent);
  const plot = chart.querySelector(".plot"), svg = plot.querySelector("svg");
  const scale = ([low, high, from, to], value) => from + (value - low) / (high - low) * (to - from);
  const make = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const show = value => value === null ? "none"
    : Number(value.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4 }) + unit;
  let marks = [], tip = null;
  const clear = () => {
    for (const mark of marks) mark.remove();
    if (tip) tip.remove();
    marks = [];
    tip = null;
  };
  const nearest = (points, step) => points.reduce(
    (best, point) => Math.abs(point[0] - step) < Math.abs(best[0] - step) ? point : best, points[0]);
  plot.addEventListener("pointerleave", clear);
  plot.addEventListener("pointermove", event => {
    clear();
    const box = svg.getBoundingClientRect(), width = svg.viewBox.baseVal.width;
    const across = (event.clientX - box.left) / box.width * width;
    const at = x[0] + (across - x[2]) / (x[3] - x[2]) * (x[1] - x[0]);
    const all = series.filter(one => one.points.length);
    if (!all.length) return;
    const closer = (a, b) => Math.abs(b - at) < Math.abs(a - at) ? b : a;
    const step = all.map(one => nearest(one.points, at)[0]).reduce(closer);
    const place = scale(x, step);
    marks.push(make("line", { class: "cursor", x1: place, x2: place, y1: y[2], y2: y[3] }));
    tip = document.createElement("div");
    tip.className = "tip";
    tip.textContent = "step " + step;
    series.forEach((one, index) => {
      const point = one.points.find(candidate => candidate[0] === step);
      if (!point) return;
      const dot = { class: "dot s" + index, cx: place, cy: scale(y, point[1]), r: 4.5 };
      if (point[1] !== null) marks.push(make("circle", dot));
      const row = document.createElement("div");
      row.className = "s" + index;
      row.append(document.createElement("i"), one.name + "  " + show(point[2]));
      tip.append(row);
    });
    for (const mark of marks) svg.append(mark);
    plot.append(tip);
    const left = place / width * box.width;
    tip.style.left = (left > box.width / 2 ? left - tip.offsetWidth - 12 : left + 12) + "px";
  });
}
)js";

}  // namespace phalanx
