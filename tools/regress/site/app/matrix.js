// SPDX-License-Identifier: Apache-2.0
// The matrix of cases and nights.

const BAD = "fe";

// Selects the cases that the query asks for: {find, show, sort}. `nights` are the indices of the nights shown.
function selectCases(suite, nights, query) {
  const words = (query.find ?? "").toLowerCase().split(/\s+/).filter(word => word);
  const failures = states => nights.filter(i => BAD.includes(states[i])).length;
  const changed = states => nights.findIndex((i, j) => j > 0 && states[i] !== states[nights[j - 1]]);
  const rows = suite.cases.map(([id, name, config, states]) => {
    const at = changed(states);
    return { id, name, config, states, failures: failures(states), changed: at < 0 ? nights.length : at };
  });
  const shown = {
    failing: row => BAD.includes(row.states[nights[0]]), failed: row => row.failures > 0,
    passing: row => row.failures === 0, quarantined: row => row.states[nights[0]] === "q",
  }[query.show] ?? (() => true);
  const has = row => words.every(word => `${row.name} ${row.config}`.toLowerCase().includes(word));
  const selected = rows.filter(row => shown(row) && has(row));
  const order = {
    failures: (a, b) => b.failures - a.failures, changed: (a, b) => a.changed - b.changed,
  }[query.sort] ?? (() => 0);
  return selected.sort((a, b) => order(a, b) || compare(a.name, b.name));
}

// There may be ten thousand cells, so this is as cheap as it can be.
function cellOf(row, night, letter) {
  const place = document.createElement("td");
  if (letter === ".") return place;
  const [word, sign] = STATES[letter] ?? STATES["?"], cell = document.createElement("a");
  cell.className = `cell ${letter}`;
  cell.href = `#/night/${night.id}?case=${row.address}`;
  cell.tabIndex = -1;
  cell.title = cell.ariaLabel = `${row.name}, ${night.day}: ${word}`;
  cell.textContent = sign;
  place.append(cell);
  return place;
}

// Returns the matrix. The newest night is the first column.
function drawMatrix(suite, query) {
  const count = query.nights === "all" ? suite.nights.length : Number(query.nights ?? 30);
  const nights = suite.nights.map((_, i) => i).reverse().slice(0, count);
  const rows = selectCases(suite, nights, query).map(row => ({ ...row, address: encodeURIComponent(row.name) }));
  const columns = nights.map(i => ({ at: i, id: suite.nights[i][0], day: day(suite.nights[i][1]) }));
  const head = make("tr", {}, make("th", { scope: "col" }, `${rows.length} of ${suite.cases.length} cases`),
    make("th", { scope: "col", class: "count" }, "failed"),
    nights.map(i => make("th", { scope: "col" }, make("a", { class: "date", href: link("night", suite.nights[i][0]),
      title: `${time(suite.nights[i][1])}, commit ${shortCommit(suite.nights[i][3])}` }, day(suite.nights[i][1])))));
  const body = make("tbody", {}, rows.map(row => make("tr", {},
    make("th", { scope: "row" }, make("a", { href: link("case", row.id), title: row.config }, row.name)),
    make("td", { class: "count" }, row.failures ? String(row.failures) : ""),
    columns.map(column => cellOf(row, column, row.states[column.at])))));
  const table = make("table", { class: "matrix-of-nights" }, make("thead", {}, head), body);
  moveByArrows(body);
  return make("div", { class: "wide", role: "region", "aria-label": "Cases by night" }, table);
}

// Lets the Tab key reach one cell of the matrix, and the arrow keys move from there.
function moveByArrows(body) {
  const cells = [...body.rows].map(row => [...row.cells].map(cell => cell.querySelector(".cell")));
  const first = body.querySelector(".cell");
  if (first) first.tabIndex = 0;
  body.addEventListener("keydown", event => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const cell = event.target.closest(".cell");
    if (!step || !cell) return;
    event.preventDefault();
    let row = cell.closest("tr").sectionRowIndex, column = cell.closest("td").cellIndex;
    do {
      row += step[0];
      column += step[1];
    } while (cells[row] && column in cells[row] && !cells[row][column]);
    const next = cells[row]?.[column];
    if (!next) return;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

function matrixKey() {
  const states = Object.entries(STATES).filter(([letter]) => !".?".includes(letter));
  return make("div", { class: "key" }, states.map(([letter, [word, sign]]) =>
    make("span", {}, make("span", { class: `cell ${letter}` }, sign), word)));
}
