// Tables of any length, of which only the visible rows are elements.
//
// Rows stay where they are while their values change: a table is sorted when the user presses a heading, or the mark
// that says that the order is out of date. New rows come at the end, and rows that are gone stay, dimmed, until then.
// A table of which the server sent only a part cannot be sorted: it would show a sample as if it were all.
import { count, h, quiet, several } from "./parts.js";

const STEP = 8, FIRST_ROWS = 30, tables = new Map(), collator = new Intl.Collator("en", { numeric: true });

// Returns the elements of a table. `spec`: title; heading, its element; noun; columns [title, kind, cell(row), by(row),
// hint], of which `by` sorts; rows; key(row); search(row), its text; sort {column, falls}, the first order; isPartial;
// isFixed, if rows have their own order; class; rowClass(row); tools; empty, the text without rows.
export function table(id, spec) {
  const it = tables.get(id) ?? { id, sort: spec.sort ?? null, cursor: null, text: "", rows: null };
  tables.set(id, Object.assign(it, { spec }));
  if (it.rows !== spec.rows) accept(it, spec.rows);
  const shown = visibleKeys(it), [first, last] = visibleRange(id, shown.length), body = shown.slice(first, last);
  it.covered = [shown.length, first, last];
  const pad = (name, rows) => h("tr", { id: `${id}-${name}`, class: "pad", "aria-hidden": "true" },
    h("td", { style: { height: `calc(${rows} * var(--row))` } }));
  const active = body.indexOf(it.cursor), head = spec.columns.map((column, index) => heading(it, column, index));
  const grid = h("table", {
    role: "grid", tabindex: "0", class: `stacks ${spec.class}`, "aria-label": spec.title, "data-table": id,
    "aria-rowcount": shown.length + 1, "aria-activedescendant": active < 0 ? null : `${id}-${first + active}`,
  }, h("thead", { role: "rowgroup" }, h("tr", { role: "row", "aria-rowindex": "1" }, head)),
  h("tbody", { role: "rowgroup" }, pad("above", first), body.map((key, index) => row(it, key, first + index)),
    pad("below", shown.length - last)));
  const empty = h("p.empty", it.rows.length ? "Nothing matches the search." : spec.empty ?? "There are none.");
  return [toolbar(it, shown.length, isOutOfDate(it)), h("div.card.rows", { id }, grid, !shown.length && empty)];
}

// Takes new rows into the order: known ones stay in their places.
function accept(it, rows) {
  const { key, isFixed, isPartial } = it.spec, isFirst = it.rows === null, known = new Set(it.order);
  it.rows = rows;
  if (isFixed || isFirst || isPartial) return sort(it);
  it.byKey = keyed(rows, key);
  it.gone = new Set(it.order.filter((old) => !it.byKey.has(old)));
  it.order.push(...[...it.byKey.keys()].filter((fresh) => !known.has(fresh)));
  for (const old of it.gone) it.byKey.set(old, it.last.get(old));
  it.last = it.byKey;
}

// Two processes may have one name: the second row gets another key.
function keyed(rows, key) {
  const byKey = new Map();
  for (const row of rows) {
    let name = key(row);
    while (byKey.has(name)) name += "'";
    byKey.set(name, row);
  }
  return byKey;
}

function sort(it) {
  const compare = comparison(it), byKey = keyed(it.rows, it.spec.key), entries = [...byKey];
  if (compare) entries.sort(([, a], [, b]) => compare(a, b));
  Object.assign(it, { byKey, order: entries.map(([name]) => name), gone: new Set(), last: byKey, checked: null });
}

// Returns the order that the user has chosen, or null if the rows have their own.
function comparison({ spec, sort: chosen }) {
  const by = chosen && !spec.isFixed && !spec.isPartial && spec.columns[chosen.column][3];
  if (!by) return null;
  const order = (a, b) => (typeof a === "string" ? collator.compare(a, b) : a - b);
  return (a, b) => (chosen.falls ? order(by(b), by(a)) : order(by(a), by(b)));
}

// Whether sorting again would change anything. It is worked out once for each version of the rows.
function isOutOfDate(it) {
  if (it.checked === it.rows) return it.isOld;
  const compare = comparison(it), value = (index) => it.byKey.get(it.order[index]);
  const isWrong = (_, index) => index > 0 && compare(value(index - 1), value(index)) > 0;
  [it.checked, it.isOld] = [it.rows, it.gone.size > 0 || Boolean(compare && it.order.some(isWrong))];
  return it.isOld;
}

const visibleKeys = ({ text, spec, order, byKey }) => (
  text ? order.filter((key) => spec.search(byKey.get(key)).toLowerCase().includes(text)) : order);

// Returns the rows on the screen and some around them, in steps, so that most scrolling needs no other rows. A table
// scrolls in its box, or with the window where the box is as high as the table.
function visibleRange(id, length) {
  const box = document.getElementById(id);
  if (!box) return [0, Math.min(FIRST_ROWS, length)];
  const height = rowHeight(box), rows = Math.min(box.clientHeight, innerHeight) / height;
  const offset = Math.max(box.scrollTop, -box.getBoundingClientRect().top);
  const top = Math.min(offset / height, length - rows), first = Math.floor(top / STEP - 1) * STEP;
  return [Math.max(first, 0), Math.min(first + Math.ceil(rows) + 3 * STEP, length)];
}

// Whether the elements of all tables still cover the screen after scrolling.
export const isCovered = () => [...tables.values()].every(({ id, covered: [length, first, last] }) => (
  !document.getElementById(id) || `${visibleRange(id, length)}` === `${[first, last]}`));

const rowHeight = (box) => parseFloat(getComputedStyle(box).getPropertyValue("--row"));
function row(it, key, index) {
  const value = it.byKey.get(key), isGone = it.gone.has(key), isCursor = key === it.cursor;
  const cells = it.spec.columns.map(([title, kind, cell]) => h("td", {
    role: "gridcell", class: kind, "data-of": kind === "n" ? title : null }, cell(value)));
  return h("tr", {
    id: `${it.id}-${index}`, role: "row", "aria-rowindex": index + 2, "aria-selected": isCursor, "data-key": key,
    class: [it.spec.rowClass?.(value), isGone && "gone", isCursor && "cursor"].filter(Boolean).join(" "),
    title: isGone ? "gone since the table was sorted" : null,
  }, cells);
}

function heading({ id, spec, sort: chosen }, [title, kind, , by, hint], index) {
  const isSorted = chosen?.column === index && !spec.isPartial;
  const button = { "data-do": "sort", "data-of": id, "data-column": index, disabled: spec.isPartial ? "" : null };
  return h("th", {
    role: "columnheader", scope: "col", class: kind, title: hint,
    "aria-sort": isSorted ? (chosen.falls ? "descending" : "ascending") : null,
  }, by && !spec.isFixed ? h("button", button, title) : title);
}

// The name of the table, the number of rows, the mark of an order that is out of date, and the search field.
function toolbar({ id, spec, rows }, shown, isOld) {
  const number = `${shown === rows.length ? "" : `${count(shown)} of `}${several(rows.length, spec.noun)}`;
  const field = { type: "search", "data-search": id, placeholder: "Search  /", "aria-label": `Search ${spec.title}` };
  const title = h(spec.heading ?? "h2", spec.title);
  return h("div.toolbar", { id: `${id}-tools` }, title, quiet(number), spec.tools, h("span.push"),
    h(`button#${id}-again.again`, { "data-do": "sortAgain", "data-of": id, disabled: isOld ? null : "" }, "Sort again"),
    h(`input#${id}-search`, { ...field, autocomplete: "off", spellcheck: "false" }));
}
// -------------------------------------------------------------------------------------------- what the user does to it
export const tableState = (id) => tables.get(id);
export const sortAgain = (id) => sort(tables.get(id));
export const search = (id, text) => { tables.get(id).text = text.toLowerCase(); };
export const putCursor = (id, key) => { tables.get(id).cursor = key; };
// Forgets what the user did to a table of another view; takes the next rows as the first ones.
export const forget = (id) => tables.delete(id);
export const renew = (id) => tables.has(id) && Object.assign(tables.get(id), { rows: null });
export function sortBy(id, column) {
  const it = tables.get(id), isNumber = it.spec.columns[column][1] !== "name";
  it.sort = { column, falls: it.sort?.column === column ? !it.sort.falls : isNumber };
  sort(it);
}

// Moves the cursor by so many rows, and scrolls to it.
export function moveCursor(id, by) {
  const it = tables.get(id), keys = visibleKeys(it), at = keys.indexOf(it.cursor);
  const index = at < 0 ? 0 : Math.max(Math.min(at + by, keys.length - 1), 0), box = document.getElementById(id);
  it.cursor = keys[index] ?? null;
  const height = rowHeight(box), top = index * height, head = box.querySelector("thead").offsetHeight;
  const isBox = box.scrollHeight > box.clientHeight + 1, room = box.clientHeight - head - height;
  if (isBox) box.scrollTop = Math.min(Math.max(box.scrollTop, top - room), top);
  else document.getElementById(`${id}-${index}`)?.scrollIntoView({ block: "nearest" });
}
