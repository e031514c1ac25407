// SPDX-License-Identifier: Apache-2.0
// Charts of curves, in the style of the pages of single runs (engine/html).

const BOX = { width: 480, height: 240, left: 56, right: 470, top: 12, bottom: 208 };

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Returns round numbers from `low` to `high`, about `count` of them.
function ticks(low, high, count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough)), factor = rough / power;
  const distance = power * (factor < 1.5 ? 1 : factor < 3.5 ? 2 : factor < 7.5 ? 5 : 10);
  const all = [];
  if (!(distance > 0) || !isFinite(distance)) return all;
  for (let i = Math.ceil(low / distance - 1e-9); i * distance <= high + 1e-9 * distance; ++i) all.push(i * distance);
  return all;
}

function shortNumber(value) {
  const size = Math.abs(value);
  if (size >= 1e9) return Number((value / 1e9).toPrecision(3)) + "G";
  if (size >= 1e6) return Number((value / 1e6).toPrecision(3)) + "M";
  if (size >= 1e4) return Number((value / 1e3).toPrecision(3)) + "k";
  return String(Number(value.toPrecision(3)));
}

// Returns the ranges of a chart, a little wider than its points, or null if it has none.
function rangesOf({ series, band = [], stacked }) {
  const points = series.flatMap(one => one.points).filter(([, y]) => y !== null);
  if (!points.length) return null;
  const xs = points.map(([x]) => x), ofBand = band.flatMap(([, low, high]) => [low, high]);
  const ys = [...points.map(([, y]) => y), ...ofBand];
  const x = [xs.reduce((a, b) => Math.min(a, b)), xs.reduce((a, b) => Math.max(a, b))];
  const y = [ys.reduce((a, b) => Math.min(a, b)), ys.reduce((a, b) => Math.max(a, b))];
  if (x[0] === x[1]) x[0] -= 1, x[1] += 1;
  const room = y[1] - y[0] > 1e-9 * Math.abs(y[1]) ? (y[1] - y[0]) * 0.08 : Math.max(Math.abs(y[0]) * 0.1, 1e-9);
  const fromZero = stacked || (y[0] >= 0 && y[0] < 0.25 * y[1]);
  return { x, y: [fromZero ? 0 : y[0] - room, y[1] + room] };
}

// Adds to each series all series before it.
function stack(series) {
  const sums = new Map();
  return series.map(one => ({ ...one, points: one.points.map(([x, y]) => {
    sums.set(x, (sums.get(x) ?? 0) + (y ?? 0));
    return [x, sums.get(x), y];
  }) }));
}

function pathOf(points, place) {
  let path = "", open = false;
  for (const [x, y] of points) {
    if (y !== null) path += (open ? "L" : "M") + place(x, y);
    open = y !== null;
  }
  return path;
}

function drawAxes(ranges, place, chart) {
  const group = svg("g", { class: "axes" });
  for (const value of ticks(...ranges.y, 4)) {
    const y = place(ranges.x[0], value).split(" ")[1];
    group.append(svg("line", { x1: BOX.left, x2: BOX.right, y1: y, y2: y }),
      svg("text", { x: BOX.left - 6, y: Number(y) + 4, "text-anchor": "end" }, (chart.axis ?? shortNumber)(value)));
  }
  for (const value of ticks(...ranges.x, 4)) {
    if (value !== Math.floor(value)) continue;
    const x = place(value, ranges.y[0]).split(" ")[0];
    const text = chart.xText ? chart.xText(value) : shortNumber(value);
    group.append(svg("text", { x, y: BOX.bottom + 18, "text-anchor": "middle" }, text));
  }
  return group;
}

function drawMark(mark, place, ranges) {
  const [x, top] = place(mark.x, ranges.y[1]).split(" ").map(Number);
  return svg("g", {}, svg("title", {}, mark.text),
    svg("line", { class: "mark", x1: x, x2: x, y1: top, y2: BOX.bottom }),
    svg("path", { class: "mark-head", d: `M${x - 5} ${top}h10l-5 8Z` }));
}

// Returns a band over steps that fewer ranks have taken: [from, to or null, ranks]; null if the chart has none of them.
function drawStretch([from, to, ranks], place, ranges) {
  const [left, right] = [Math.max(from, ranges.x[0]), Math.min(to ?? Infinity, ranges.x[1])]
    .map(step => Number(place(step, ranges.y[0]).split(" ")[0]));
  if (left >= right) return null;
  const text = `${ranks} ${ranks === 1 ? "rank" : "ranks"}`, width = right - left;
  return svg("g", { class: "stretch" }, svg("title", {}, `${text} from step ${from} on`),
    svg("rect", { x: left, y: BOX.top, width, height: BOX.bottom - BOX.top }),
    svg("line", { x1: left, x2: left, y1: BOX.top, y2: BOX.bottom }),
    svg("text", { x: left + 4, y: BOX.top - 2 }, width >= 60 ? text : width >= 26 ? String(ranks) : ""));
}

// Returns a chart: {title, series: [{name, points: [[x, y]], dots}], unit or text(y), axis(y), band: [[x, low, high]],
// marks: [{x, text}], stretches: [[from, to, ranks]], xText(x), xName(x), open(x), stacked}. Without points it is null. The arrow keys and the pointer
// show the values of a place, and Enter or a click opens it, if `open` is given.
function drawChart(chart) {
  const ranges = rangesOf(chart.stacked ? { ...chart, series: stack(chart.series) } : chart);
  if (!ranges) return null;
  const lines = chart.stacked ? stack(chart.series) : chart.series;
  const scale = ([low, high], from, to, value) => (from + (value - low) / (high - low) * (to - from)).toFixed(1);
  const place = (x, y) =>
    scale(ranges.x, BOX.left, BOX.right, x) + " " + scale(ranges.y, BOX.bottom, BOX.top, y);
  const drawing = svg("svg", { viewBox: `0 0 ${BOX.width} ${BOX.height}`, role: "img", tabindex: "0",
    "aria-label": `${chart.title}; the arrow keys show values` }, drawAxes(ranges, place, chart));
  if (chart.band?.length) {
    const high = chart.band.map(([x, , y]) => place(x, y)), low = chart.band.map(([x, y]) => place(x, y)).reverse();
    drawing.append(svg("path", { class: "band s0", d: "M" + [...high, ...low].join("L") + "Z" }));
  }
  lines.map((line, i) => drawLine(line, i, chart, place, ranges)).reverse().forEach(line => drawing.append(line));
  for (const stretch of chart.stretches ?? []) {
    const band = drawStretch(stretch, place, ranges);
    if (band) drawing.append(band);
  }
  for (const mark of chart.marks ?? []) drawing.append(drawMark(mark, place, ranges));
  const plot = make("div", { class: "plot" }, drawing);
  const text = chart.text ?? (value => number(value) + (chart.unit ?? ""));
  follow(plot, drawing, { lines, ranges, place, text, chart });
  const legend = make("div", { class: "legend" }, chart.series.map((one, i) => make("span", { class: `s${i}` },
    make("i"), one.name + " ", make("b", {}, one.points.length ? text(one.points.at(-1)[1]) : ""))));
  return make("figure", { class: "chart" }, make("figcaption", {}, chart.title), legend, plot);
}

function drawLine(line, i, chart, place, ranges) {
  if (chart.stacked) {
    const ends = line.points.length ? [line.points.at(-1), line.points[0]].map(([x]) => place(x, ranges.y[0])) : [];
    const path = ends.length ? pathOf(line.points, place) + "L" + ends.join("L") + "Z" : "";
    return svg("path", { class: `area s${i}`, d: path });
  }
  const group = svg("g", { class: `line s${i}` }, svg("path", { d: pathOf(line.points, place) }));
  const shown = line.points.filter(([, y]) => y !== null);
  if (line.dots || shown.length === 1) {
    for (const [x, y] of shown) {
      const [cx, cy] = place(x, y).split(" ");
      group.append(svg("circle", { cx, cy, r: 3 }));
    }
  }
  return group;
}

// Shows the values of the place under the pointer, or of the one that the arrow keys have reached.
function follow(plot, drawing, { lines, ranges, place, text, chart }) {
  const steps = [...new Set(lines.flatMap(line => line.points.map(([x]) => x)))].sort((a, b) => a - b);
  let marks = [], at = -1;
  const clear = () => {
    marks.forEach(mark => mark.remove());
    marks = [];
  };
  const show = index => {
    clear();
    at = Math.max(0, Math.min(index, steps.length - 1));
    const step = steps[at], [across] = place(step, ranges.y[0]).split(" ");
    const tip = make("div", { class: "tip", role: "status" }, chart.xName ? chart.xName(step) : `step ${step}`);
    marks.push(svg("line", { class: "cursor", x1: across, x2: across, y1: BOX.top, y2: BOX.bottom }));
    lines.forEach((line, i) => {
      const point = line.points.find(([x]) => x === step);
      if (!point) return;
      const [cx, cy] = place(step, point[1] ?? ranges.y[0]).split(" ");
      if (point[1] !== null) marks.push(svg("circle", { class: `dot s${i}`, cx, cy, r: 4.5 }));
      tip.append(make("div", { class: `s${i}` }, make("i"), `${line.name}  ${text(point[2] ?? point[1])}`));
    });
    drawing.append(...marks);
    plot.append(tip);
    marks.push(tip);
    const box = drawing.getBoundingClientRect(), left = across / BOX.width * box.width;
    tip.style.left = (left > box.width / 2 ? Math.max(0, left - tip.offsetWidth - 12) : left + 12) + "px";
  };
  const nearest = event => {
    const box = drawing.getBoundingClientRect(), across = (event.clientX - box.left) / box.width * BOX.width;
    const x = ranges.x[0] + (across - BOX.left) / (BOX.right - BOX.left) * (ranges.x[1] - ranges.x[0]);
    return steps.reduce((best, step, i) => Math.abs(step - x) < Math.abs(steps[best] - x) ? i : best, 0);
  };
  const open = () => chart.open && at >= 0 && chart.open(steps[at]);
  plot.addEventListener("pointermove", event => show(nearest(event)));
  plot.addEventListener("pointerleave", clear);
  drawing.addEventListener("blur", clear);
  drawing.addEventListener("click", open);
  if (chart.open) drawing.style.cursor = "pointer";
  drawing.addEventListener("keydown", event => {
    const target = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: steps.length - 1 }[event.key];
    if (event.key === "Enter") open();
    if (target === undefined) return;
    event.preventDefault();
    show(at < 0 ? steps.length - 1 : target);
  });
}

const charts = drawn => drawn.some(one => one) ? make("div", { class: "charts" }, drawn.filter(one => one)) : null;
