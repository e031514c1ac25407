// SPDX-License-Identifier: Apache-2.0
// Tables that readers sort.

const compare = (a, b) => {
  const [emptyA, emptyB] = [a, b].map(value => value === null || value === undefined || value === "");
  if (emptyA || emptyB) return emptyA - emptyB;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
};

// Returns a table. Columns are {title, value(row), cell(row), left, wrap}: rows are sorted by `value`, and `cell`, a
// node or a text, is shown; without it the value is shown. Rows cannot be sorted by a column without `value`.
function makeTable(columns, rows, caption) {
  let by = -1, up = true;
  const body = make("tbody");
  const heads = columns.map((column, i) => make("th", { scope: "col", class: column.left ? "left" : null },
    column.value ? make("button", { type: "button", onclick: () => sortBy(i) }, column.title) : column.title));
  const rowOf = row => make("tr", {}, columns.map((column, i) => {
    const shown = column.cell ? column.cell(row) : column.value(row) ?? "";
    const type = [column.left ? "left" : "", column.wrap ? "wrap" : ""].join(" ").trim();
    return make(i ? "td" : "th", { class: type || null, scope: i ? null : "row" },
      shown instanceof Node ? shown : String(shown));
  }));
  const fill = sorted => body.replaceChildren(...sorted.map(rowOf));
  const sortBy = i => {
    up = by === i ? !up : true;
    by = i;
    heads.forEach((head, j) => j === i ? head.setAttribute("aria-sort", up ? "ascending" : "descending")
      : head.removeAttribute("aria-sort"));
    const sign = up ? 1 : -1, value = columns[i].value;
    fill([...rows].sort((a, b) => sign * compare(value(a), value(b))));
  };
  fill(rows);
  return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
    make("table", {}, make("thead", {}, make("tr", {}, heads)), body));
}

// Returns large values with their names: [[text or node, name], ...].
const tiles = all => make("dl", { class: "tiles" },
  all.map(([value, name]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));

// Returns a group of controls: {name, title, options: [[value, text]]}, or a text field without options; `query`
// has the values, and a change is passed to `changed` with the name and the value.
function filters(controls, query, changed) {
  return make("form", { class: "filters", onsubmit: event => event.preventDefault() }, controls.map(control => {
    const value = query[control.name] ?? control.options?.[0][0] ?? "";
    const input = control.options
      ? make("select", { name: control.name, onchange: event => changed(control.name, event.target.value) },
        control.options.map(([key, text]) => make("option", { value: key, selected: key === value }, text)))
      : make("input", { type: "search", name: control.name, value, placeholder: control.hint, autocomplete: "off",
        oninput: event => changed(control.name, event.target.value) });
    return make("label", {}, control.title, input);
  }));
}
