// SPDX-License-Identifier: Apache-2.0
// The page of a case: its trends over the nights.

const median = values => {
  const sorted = [...values].sort((a, b) => a - b), middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

const BAND_NIGHTS = 14, LEAST_NIGHTS = 4;

// Returns the band within which a night is usual: around the median of the nights before it and since the last lasting
// change (`changed` has the places of these), as wide as they vary. 1.4826 times the median distance from the median
// estimates one standard deviation; the band has three on each side.
function usualBand(points, changed) {
  const band = [];
  points.forEach(([x], i) => {
    const since = changed.filter(place => place < x).reduce((a, b) => Math.max(a, b), -1);
    const before = points.slice(Math.max(0, i - BAND_NIGHTS), i).filter(([place]) => place >= since).map(([, y]) => y);
    if (before.length < LEAST_NIGHTS) return;
    const middle = median(before), spread = 3 * 1.4826 * median(before.map(y => Math.abs(y - middle)));
    band.push([x, middle - spread, middle + spread]);
  });
  return band;
}

function trendChart(metric, nights, suite, changes) {
  const place = new Map(suite.nights.map(([id], i) => [id, i]));
  const points = nights.map(([id, values]) => [place.get(id), median(values.map(([, value]) => value))]);
  const runs = new Map(nights.map(([id, values]) => [place.get(id), values.at(-1)[0]]));
  const here = changes.filter(change => change.metric === metric);
  return drawChart({ title: metricTitle(metric),
    series: [{ name: "median of the night", points, dots: points.length <= 60 }],
    band: usualBand(points, here.map(change => place.get(change.night))), text: value => metricText(metric, value),
    axis: axisText(metric),
    xText: x => suite.nights[x] ? day(suite.nights[x][1]) : "",
    xName: x => `${day(suite.nights[x][1])}, commit ${shortCommit(suite.nights[x][3])}`,
    marks: here.map(change => ({ x: place.get(change.night), text: change.text })),
    open: x => { location.hash = link("run", runs.get(x)); } });
}

// Returns the metrics in the order in which they are shown: what is asked for, speed, results, and the rest.
function orderedMetrics(metrics, first) {
  const rank = metric => metric === first ? 0 : /throughput/.test(metric) ? 1 : metric.startsWith("test/") ? 2
    : metric.startsWith("run/") ? 4 : 3;
  return Object.keys(metrics).sort((a, b) => rank(a) - rank(b) || compare(a, b));
}

function nightTable(suite, states, metrics, shown) {
  const byNight = new Map(shown.map(metric => [metric, new Map(metrics[metric])]));
  const all = suite.nights.map((night, i) => ({ night, letter: states[i] }));
  const rows = all.filter(row => row.letter !== ".").reverse();
  const value = (row, metric) => {
    const values = byNight.get(metric).get(row.night[0]);
    return values ? median(values.map(one => one[1])) : null;
  };
  const runOf = row => shown.map(metric => byNight.get(metric).get(row.night[0])?.at(-1)[0]).find(run => run);
  return makeTable([
    { title: "night", value: row => row.night[1],
      cell: row => make("a", { href: link("night", row.night[0]) }, day(row.night[1])) },
    { title: "state", value: row => STATES[row.letter][0], cell: row => badge(STATES[row.letter][0]), left: true },
    { title: "commit", value: row => row.night[3], cell: row => shortCommit(row.night[3]), left: true },
    ...shown.map(metric => ({ title: metricTitle(metric), value: row => value(row, metric),
      cell: row => value(row, metric) === null ? "" : metricText(metric, value(row, metric)) })),
    { title: "run", cell: row => runOf(row) ? make("a", { href: link("run", runOf(row)) }, String(runOf(row))) : "" },
  ], rows, "Nights of the case");
}

// Returns the suite of a case and its row in the overview, or throws.
function findCase(overview, id) {
  for (const suite of overview.suites) {
    const one = suite.cases.find(candidate => candidate[0] === id);
    if (one) return { suite, one };
  }
  throw new Error(`This report has no case ${id}.`);
}

async function casePage([id], query) {
  const overview = await load("overview"), { suite, one: [, name, config, states] } = findCase(overview, Number(id));
  const { metrics, changes } = await load(`cases/${id}`), order = orderedMetrics(metrics, query.metric);
  const newest = [...changes].sort((a, b) => b.night - a.night);
  return { title: name, trail: [["", suite.name, { suite: suite.name }]], content: [
    make("h1", {}, name), about(`Config ${config}. A point of a curve is a night, and opens its run; the band is ` +
      `what the ${BAND_NIGHTS} nights before make usual; a dashed line is a lasting change.`),
    section("What has changed", newest.length ? make("ul", { class: "plain" }, newest.map(change =>
      make("li", {}, tinted(change.metric, change.before, change.after, change.text + " "),
        make("a", { href: link("night", change.night) }, day(findNight(overview, change.night).night[1]))))) : null),
    section("Trends", charts(order.map(metric => trendChart(metric, metrics[metric], suite, changes)))),
    section("Nights", nightTable(suite, states, metrics, order.slice(0, 4)))] };
}
