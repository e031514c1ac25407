// SPDX-License-Identifier: Apache-2.0
// The page of one night.

// Returns the suite and the index of a night, or throws.
function findNight(overview, id) {
  for (const suite of overview.suites) {
    const at = suite.nights.findIndex(night => night[0] === id);
    if (at >= 0) return { suite, at, night: suite.nights[at] };
  }
  throw new Error(`This report has no night ${id}.`);
}

const expectationTable = unmet => makeTable([
  { title: "expectation", value: one => one.key }, { title: "wanted", value: one => one.wanted },
  { title: "got", value: one => one.got },
  { title: "", cell: one => make("span", { class: one.met ? "good" : "worse" }, one.met ? "✓ met" : "✗ not met") },
], unmet, "Expectations");

// Shows the end of the logs in an element, since that is where the reason is.
function showEnds(element) {
  for (const tail of element.querySelectorAll("pre.tail")) tail.scrollTop = tail.scrollHeight;
}

const logTails = logs => (logs ?? []).map(log => make("details",
  { class: "small", open: log.name === "stderr.log", ontoggle: event => showEnds(event.target) },
  make("summary", {}, log.whole ? log.name : `the end of ${log.name}`),
  make("pre", { tabindex: "0", class: "tail" }, log.tail),
  log.link ? make("p", {}, make("a", { href: log.link }, `all of ${log.name}`)) : null));

const stallList = stalls => stalls?.length
  ? [make("p", {}, make("strong", {}, "Ranks waited:")),
    make("ul", {}, stalls.map(stall => make("li", {}, stall)))] : [];

// Returns which start of its case a run is.
const startText = run => `attempt ${run.attempt}` + (run.role === "main" ? "" : ", " + run.role.replaceAll("_", " "));

const exitText = exit => exit === null ? "has not ended" : exit === 0 ? "done" : exit === 4 ? "missed an expectation"
  : `status ${exit}`;

function failureOf(one) {
  const run = one.runs.findLast(candidate => candidate.exit !== 0 || candidate.unmet.length) ?? one.runs.at(-1);
  return make("article", { class: "failure", "data-case": one.name },
    make("h3", {}, badge(one.state), " ", make("a", { href: link("case", one.case) }, one.name)),
    one.reason ? make("p", {}, one.reason) : null,
    run ? about(make("a", { href: link("run", run.id) }, `run ${run.id}`),
      `: ${exitText(run.exit)}, ${startText(run)}`) : null,
    run?.error && run.error !== one.reason ? make("p", {}, run.error) : null,
    run?.unmet.length ? expectationTable(run.unmet) : null, stallList(run?.stalls), logTails(run?.logs));
}

function caseTable(cases) {
  const seconds = one => one.runs.length ? one.runs.reduce((sum, run) => sum + (run.seconds ?? 0), 0) : null;
  return makeTable([
    { title: "case", value: one => one.name, cell: one => make("a", { href: link("case", one.case) }, one.name) },
    { title: "state", value: one => one.state, cell: one => badge(one.state), left: true },
    { title: "ranks", value: one => one.ranks }, { title: "hosts", value: one => one.hosts },
    { title: "time", value: seconds, cell: one => duration(seconds(one)) },
    { title: "runs", cell: one => make("span", {}, one.runs.map(run =>
      [make("a", { href: link("run", run.id), title: exitText(run.exit) }, String(run.id)), " "])) },
    { title: "reason", value: one => one.reason, left: true, wrap: true },
  ], cases, "Cases of the night");
}

async function nightPage([id], query) {
  const overview = await load("overview"), { suite, at, night } = findNight(overview, Number(id));
  const data = await load(`nights/${night[0]}`), states = [...new Set(data.cases.map(one => one.state))].sort();
  const failed = data.cases.filter(one => ["failed", "error"].includes(one.state));
  const chosen = data.cases.find(one => one.name === query.case), place = make("div");
  const draw = () => {
    const words = (query.find ?? "").toLowerCase();
    place.replaceChildren(caseTable(data.cases.filter(one => (!query.state || one.state === query.state) &&
      `${one.name} ${one.reason}`.toLowerCase().includes(words))));
  };
  const changed = (name, value) => {
    query[name] = value;
    const given = Object.fromEntries(Object.entries(query).filter(([, text]) => text));
    history.replaceState(null, "", link("night", id, given));
    draw();
  };
  draw();
  const beside = (index, text) =>
    suite.nights[index] ? make("a", { href: link("night", suite.nights[index][0]) }, text) : "";
  const controls = [{ name: "find", title: "Find", hint: "part of a name or reason" },
    { name: "state", title: "State", options: [["", "all"], ...states.map(state => [state, state])] }];
  const count = state => data.cases.filter(one => one.state === state).length;
  return { title: `Night of ${day(night[1])}`, trail: [["", suite.name, { suite: suite.name }]], content: [
    make("h1", {}, `Night of ${time(night[1])}`),
    about(`Suite ${suite.name}, ${treeOf(night)}. `,
      beside(at - 1, "the night before"), " ", beside(at + 1, "the night after")),
    tiles([...states.map(state => [String(count(state)), state]),
      [night[2] ? duration(night[2] - night[1]) : "running", "time"]]),
    chosen ? section("Chosen case", failureOf(chosen)) : null,
    section("Failures", failed.filter(one => one !== chosen).map(failureOf)),
    section("All cases", filters(controls, query, changed), place)] };
}
