// SPDX-License-Identifier: Apache-2.0
// The first page: the last night, what has changed, and the matrix.

function nightTiles(suite) {
  const last = suite.nights.length - 1, night = suite.nights[last];
  const count = letters => suite.cases.filter(([, , , states]) => letters.includes(states[last])).length;
  const failed = count("fe"), before = last > 0
    ? suite.cases.filter(([, , , states]) => BAD.includes(states[last]) && !BAD.includes(states[last - 1])).length : 0;
  const all = [[String(count("p")), "passed"],
    [make("span", { class: failed ? "worse" : "good" }, String(failed)), "failed"],
    [String(before), "of these new"], [String(count("sq")), "skipped or quarantined"],
    [night[2] ? duration(night[2] - night[1]) : "running", "the night took"]];
  return tiles(all);
}

function lastFailures(suite) {
  const last = suite.nights.length - 1, night = suite.nights[last];
  const failed = suite.cases.filter(([, , , states]) => BAD.includes(states[last]));
  const shown = failed.slice(0, 12).map(([, name, , states]) => make("li", {}, badge(STATES[states[last]][0]), " ",
    make("a", { href: link("night", night[0], { case: name }) }, name)));
  if (failed.length > shown.length) {
    shown.push(make("li", {}, make("a", { href: link("night", night[0]) }, `${failed.length - shown.length} more`)));
  }
  return shown.length ? make("ul", { class: "plain" }, shown) : null;
}

function recentChanges(suite) {
  const place = new Map(suite.nights.map(([id], i) => [id, i]));
  const recent = [...suite.changes].filter(change => suite.nights.length - place.get(change.night) <= 30)
    .sort((a, b) => place.get(b.night) - place.get(a.night));
  if (!recent.length) return null;
  const item = change => make("li", {}, tinted(change.metric, change.before, change.after, change.text + " "),
    make("a", { href: link("case", change.case, { metric: change.metric }) },
      day(suite.nights[place.get(change.night)][1])));
  const list = changes => make("ul", { class: "plain" }, changes.map(item));
  return [list(recent.slice(0, 10)), recent.length > 10 ? make("details", { class: "small" },
    make("summary", {}, `${recent.length - 10} more`), list(recent.slice(10))) : null];
}

async function overviewPage(_, query) {
  const overview = await load("overview");
  if (!overview.suites.length) return { title: "Nightly runs", content: [make("h1", {}, "Nightly runs"),
    about("The database has no session yet. Run a suite with tools:regress."), runningNow()] };
  const suite = overview.suites.find(one => one.name === query.suite) ?? overview.suites[0];
  const night = suite.nights.at(-1), place = make("div");
  const draw = () => place.replaceChildren(drawMatrix(suite, query));
  const changed = (name, value) => {
    if (value) query[name] = value;
    else delete query[name];
    history.replaceState(null, "", link(query));
    if (name === "suite") show();
    else draw();
  };
  const controls = [
    { name: "suite", title: "Suite", options: overview.suites.map(one => [one.name, one.name]) },
    { name: "find", title: "Find", hint: "part of a name" },
    { name: "show", title: "Show", options: [["", "all cases"], ["failing", "failing last night"],
      ["failed", "failed in these nights"], ["passing", "always passed"], ["quarantined", "quarantined"]] },
    { name: "sort", title: "Sort by", options: [["", "name"], ["failures", "failures"], ["changed", "last change"]] },
    { name: "nights", title: "Nights", options: [["30", "30"], ["90", "90"], ["all", `all ${suite.nights.length}`]] },
  ].filter(one => one.name !== "suite" || overview.suites.length > 1);
  draw();
  const when = about("Last night: ", make("a", { href: link("night", night[0]) }, time(night[1])),
    `, ${treeOf(night)}. Written ${time(overview.written)} by Phalanx ${overview.version}.`);
  return { title: `Nightly runs: ${suite.name}`, content: [
    make("h1", {}, `Suite ${suite.name}`), when, nightTiles(suite), runningNow(),
    section("Failed last night", lastFailures(suite)), section("What has changed", recentChanges(suite)),
    section("Cases by night", filters(controls, query, changed), place, matrixKey())] };
}
