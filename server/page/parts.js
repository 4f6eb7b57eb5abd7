// Elements, numbers, and requests.
//
// Each view is a function that returns new elements; `morph` then changes the shown elements into them. So a view never
// asks what was there before, and the shown elements keep focus, scroll position and selected text. Names may hold
// anything: they only become text nodes and attribute values, never HTML.

// Makes an element: `h("p#id.class", { title: "…" }, …children)`. Attributes may be left out; children that are null,
// undefined or false are. `style` is an object, since the content security policy forbids style attributes.
export function h(selector, ...rest) {
  const [start, ...classes] = selector.split("."), [tag, id] = start.split("#"), element = document.createElement(tag);
  const attributes = rest[0]?.constructor === Object ? rest.shift() : {};
  if (id) element.id = id;
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") for (const [key, it] of Object.entries(value)) element.style.setProperty(key, it);
    else if (isPresent(value)) element.setAttribute(name, value);
  }
  element.append(...rest.flat(Infinity).filter((it) => isPresent(it) && it !== ""));
  return element;
}
const isPresent = (it) => it !== null && it !== undefined && it !== false;

// Changes an element into a new one of the same kind. `data-keep`: its content belongs to somebody else. `data-edit`:
// the user types its value, and the view has it.
function morph(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (old.hasAttribute("data-keep")) return;
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes)
    if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (fresh.hasAttribute("style") && old.style.cssText !== fresh.style.cssText) old.style.cssText = fresh.style.cssText;
  if (!old.hasAttribute("data-edit")) morphChildren(old, [...fresh.childNodes]);
  else if (old.value !== fresh.value) old.value = fresh.value;
}

// Changes the children of an element. An element with an id is found again by it, others by their kind and order. Shown
// elements never move, because a moved element loses its focus and scroll position.
export function morphChildren(parent, children) {
  let last = null;
  const next = () => (last ? last.nextSibling : parent.firstChild);
  for (const child of children) {
    const known = findShown(next(), child);
    while (known && next() !== known) next().remove();
    if (known) morph(known, child);
    else parent.insertBefore(child, next());
    last = known ?? child;
  }
  while (next()) next().remove();
}

function findShown(at, { id, nodeName }) {
  const isOther = (it) => (id ? it.id !== id : !it.id && it.nodeName !== nodeName);
  while (at && isOther(at)) at = at.nextSibling;
  return at && (id || !at.id) ? at : null;
}

export const link = (href, text) => h("a", { href }, text);
export const bold = (text) => h("b", { title: text }, text);
export const pill = (tone, text, title) => h("span", { class: `pill ${tone}`, title }, text);
export const quiet = (...children) => h("span.quiet", children);
export const sub = (text, title) => h("span.sub", { title: title ?? text }, text);
export const short = (text) => h("span.short", text);
export const note = (...children) => h("p.note", children);

// A table whose rows are all elements. Columns are [title, kind, cell].
export const plainTable = (title, columns, rows, heading = h("h2", title)) => [heading, h("div.card",
  h("table.stacks", { "aria-label": title },
    h("thead", h("tr", columns.map(([name, kind]) => h("th", { class: kind, scope: "col" }, name)))),
    h("tbody", rows.map((row) => h("tr", columns.map(([name, kind, cell]) => h("td", {
      class: kind, "data-of": kind === "n" ? name : null }, cell(row))))))))];

export const address = (path, of) => `${path}?${new URLSearchParams(Object.entries(of).filter(([, it]) => it !== ""))}`;
// Asks for JSON; with a body, it posts that. The error of a refusal has the status of the answer.
export async function ask(path, { body, token, wait = 20_000 } = {}) {
  const kind = body && { "content-type": "application/json" };
  const headers = { ...kind, ...(token && { authorization: `Bearer ${token}` }) };
  const post = body && { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(path, { ...post, headers, signal: AbortSignal.timeout(wait) });
  if (response.ok) return response.json();
  const reason = (await response.text()).trim().slice(0, 2_000) || response.statusText;
  throw Object.assign(new Error(reason), { status: response.status });
}
// ------------------------------------------------------------------------------------------------------------ numbers
// As `doorward_pages::numbers` formats them, so that the page and the command line show the same text; but from one
// million on shorter.
const NONE = "–";
const format = (digits) => new Intl.NumberFormat("en", { maximumFractionDigits: digits, roundingMode: "halfEven" });
const formats = [0, 1, 2, 3, 4, 5, 6].map(format);
const grouped = (value, digits = 0) => formats[digits].format(value || 0);
const LONG = 1e6, compacts = [1, 2, 3, 4, 5, 6].map((maximumSignificantDigits) =>
  new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits }));
const compact = (value, digits) => compacts[digits - 1].format(value);
const exponent = (value, digits) => value.toExponential(digits).replace("+", "");

// Returns a formatter with so many significant digits, and all digits before the point of a number that is not long.
const figure = (digits, least) => (value) => {
  const size = Math.abs(value), after = Math.min(Math.max(digits - 1 - Math.floor(Math.log10(size)), 0), digits);
  if (!Number.isFinite(value)) return NONE;
  if (size && (size < least || size >= 1e15)) return exponent(value, digits / 2);
  return size < LONG ? grouped(value, after) : compact(value, digits);
};
// An amount: `1,234.5`. A value that changes all the time is measured, and shorter.
export const amount = figure(6, 1e-6), measured = figure(4, 1e-4);
export const count = (value) => (value === null || value === undefined ? NONE : grouped(value));
export const several = (value, one, many = `${one}s`) => `${amount(value)} ${value === 1 ? one : many}`;
export function bytes(value) {
  const [unit, name] = value < 1024 ? [1, "B"] : value < 1024 ** 2 ? [1024, "KiB"] : [1024 ** 2, "MiB"];
  return `${grouped(Math.floor((value / unit) * 10) / 10, 1)} ${name}`;
}

// Formats a part in percent. A value close to 100 % gets more digits, so that it does not look like 100 %.
export function percent(part) {
  const value = part * 100, away = Math.abs(value - 100);
  if (!Number.isFinite(value)) return NONE;
  if (value > 1e-7 && value < 0.005) return "< 0.01 %";
  let digits = Math.abs(value) < 10 ? 2 : 1;
  while (digits < 4 && away > 1e-7 && away < 0.51 * 10 ** -digits) digits++;
  return `${Math.abs(value - Math.round(value)) < 1e-7 ? Math.round(value) : value.toFixed(digits)} %`;
}

// Formats a span of milliseconds in its two largest units: `1 h 5 min`, `2.5 s`, `40 ms`.
export function span(millis) {
  const seconds = millis / 1000;
  if (!Number.isFinite(seconds) || seconds < 0) return NONE;
  if (seconds < 0.9995) return millis === 0 ? "0 s" : millis < 0.5 ? "< 1 ms" : `${Math.round(millis)} ms`;
  if (seconds < 59.95) return `${Number(seconds.toFixed(1))} s`;
  const whole = Math.round(seconds), hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  const units = [[Math.floor(hours / 24), "d"], [hours % 24, "h"], [minutes, "min"], [whole % 60, "s"]];
  const first = units.findIndex(([value]) => value);
  return units.slice(first, first + 2).filter(([value]) => value).map((it) => it.join(" ")).join(" ");
}

export const left = (millis, since) => span(Math.max(millis - since, 0));
export const timeOfDay = (millis) => new Date(millis).toLocaleTimeString("en-GB");

// The smallest relative difference that the page shows: sums went through roundings.
const SHOWN = 1e-9;
export const isLess = (a, b) => a < b * (1 - SHOWN);
export const isMore = (a, b) => a > b * (1 + SHOWN);
export const shortOf = (it) => (isLess(it.granted, it.wants) ? it.wants - it.granted : 0);

// A bar on a scale that ends at `whole`: the granted part, then `held`, what older leases may still use, then `short`,
// what is wanted beyond that. A mark shows the capacity.
export function bar({ granted, reserved = granted, wants = granted, capacity }, whole) {
  const width = (from, to) => `${whole > 0 ? (100 * Math.max(Math.min(to, whole) - from, 0)) / whole : 0}%`;
  const held = Math.max(reserved, granted);
  const part = (name, from, to) => h("i", { class: name, style: { width: width(from, to) } });
  const title = `wants ${amount(wants)}, granted ${amount(granted)}, reserved ${amount(reserved)}`;
  return h("div.bar", { role: "img", "aria-label": title, title },
    part("", 0, granted), part("held", granted, held), isMore(wants, held) && part("lack", held, wants),
    capacity > 0 && capacity < whole && h("b", { style: { left: width(0, capacity) } }));
}
