// The live page: its state, the connection to the server, and what the keyboard and the pointer do.
//
// `/live` sends the status as JSON, at most once a second; the page asks `/tree` and `/history` now and then. Each
// answer changes `state`, and `draw` makes the whole page from it. There is no other way from data to the screen.
import { editActs, editor, isUnsaved, openDocument, shadow, typed, typedKey } from "./editor.js";
import { address, ask, h, morphChildren } from "./parts.js";
import { details, drawChart, redrawChart, resource } from "./resource.js";
import { forget, isCovered, moveCursor, putCursor, renew, search, sortAgain, sortBy, tableState } from "./tables.js";
import { banners, footer, front, header, limits, need, resourceLink, templates } from "./views.js";

// The most that the page asks for: of resources, and of leases of one resource.
const RESOURCES_MAX = 2_000, LEASES_MAX = 10_000;
const TREE_EVERY_MS = 1_000, HISTORY_EVERY_MS = 10_000, RETRY_MS = 3_000, SAMPLES_MAX = 900;
const state = {
  route: readRoute(), status: null, isOfOtherView: false, tree: null, treeFor: "", treeProblem: null, history: null,
  leasesMax: LEASES_MAX, range: 0, folds: new Map(), detail: null, isPaused: false, lostAt: null, heardAt: null,
  chosen: readRoute().id, // resource that the tree and the chart of the front view show
  seen: [], // samples of the shown resource that came with the status
  holder: "", named: "", // texts that the server looks for in names of holders, and of resources
  since: 0, treeSince: 0, clockAhead: 0, // ms since the status and the tree; the server's clock before ours
};
const views = { front, resource, limits, templates: (it) => [...templates(it), shadow()], edit: editor };
const [head, main, foot, dialog] = ["header", "main", "footer", "dialog"].map((it) => document.querySelector(it));
function readRoute() {
  const query = new URLSearchParams(location.search), paths = { "/resource": "resource", "/limits": "limits" };
  const [view, id, token, kind, domain] = ["view", "id", "token", "kind", "domain"].map((it) => query.get(it) ?? "");
  const named = ["templates", "edit"].includes(view) ? view : "front";
  return { view: paths[location.pathname] ?? named, id, token, kind, domain, href: location.href };
}
// ------------------------------------------------------------------------------------------------------ the connection
const queries = {
  front: ({ named, route }) => ({ limit: RESOURCES_MAX, limits: true, token: named ? "" : route.token, named }),
  resource: ({ route, holder }) => ({ id: route.id, leases: LEASES_MAX, holder }),
  limits: () => ({ limits: true, resources: false }), edit: () => ({ resources: false }),
  templates: () => ({ templates: true, resources: false }),
};
const runs = { tree: 0, history: 0 };
let events = null, retry = 0, statusAt = 0, treeAt = 0, stoppedAt = null;

// Opens the stream of statuses for the view. It is closed in a pause and while nobody sees the page.
function connect() {
  events?.close();
  clearTimeout(retry);
  for (const name of Object.keys(runs)) runs[name] += 1;
  if (state.isPaused || document.hidden) return;
  events = new EventSource(address("/live", queries[state.route.view](state)));
  events.onmessage = ({ data }) => accept(JSON.parse(data));
  events.onerror = ({ target }) => lose(target.readyState === EventSource.CLOSED);
  followAll();
}

function accept(status) {
  Object.assign(state, { status, isOfOtherView: false, lostAt: null, heardAt: Date.now() });
  [statusAt, stoppedAt] = [performance.now(), null];
  if (state.route.view === "front") choose(state.chosen);
  if (newSearch && renew(newSearch)) newSearch = "";
  const { route, chosen, clockAhead, seen } = state, id = route.view === "front" ? chosen : route.id;
  const of = status.resources.find((it) => it.resource_id === id), at = Date.now() + clockAhead;
  if (of) state.seen = [...seen, [at, of.capacity, of.wants, of.granted, of.reserved]].slice(-SAMPLES_MAX);
  render();
}

// The browser connects again by itself, unless the server has refused the stream.
function lose(isClosed) {
  state.lostAt ??= Date.now();
  stoppedAt ??= performance.now();
  if (isClosed) retry = setTimeout(connect, RETRY_MS);
  render();
}

// Chooses the resource that the front view shows: this one, or if it is gone, the one that needs most of its capacity.
function choose(id) {
  const { resources: all } = state.status;
  const first = () => all.reduce((most, it) => (need(it) > need(most) ? it : most), all[0])?.resource_id ?? "";
  const next = all.some((it) => it.resource_id === id) ? id : first() || (state.named && id);
  if (tableState("resources")) putCursor("resources", next);
  if (next === state.chosen) return;
  Object.assign(state, { chosen: next, seen: [], history: null });
  followAll();
}

// Asks for JSON again and again, until the next call for the same name or a pause; less often if answers take long.
async function follow(name, path, every, take) {
  const run = ++runs[name], isOver = () => run !== runs[name];
  while (!isOver()) {
    const began = performance.now();
    const answer = await ask(path).then((value) => ({ value }), (error) => ({ problem: error.message }));
    if (isOver()) return;
    take(answer);
    render();
    await new Promise((resolve) => setTimeout(resolve, Math.max(every, 10 * (performance.now() - began))));
  }
}

function followAll() {
  const { chosen, route } = state, id = { resource: route.id, front: chosen }[route.view];
  if (route.view === "front") follow("tree", address("/tree", { id }), TREE_EVERY_MS, ({ value, problem }) => {
    if (value) [state.tree, state.treeFor, treeAt] = [value, id, performance.now()];
    state.treeProblem = problem ?? null;
  });
  if (id) follow("history", address("/history", { id }), HISTORY_EVERY_MS, ({ value }) => {
    if (value) Object.assign(state, { history: value, clockAhead: value.now_ms - Date.now() });
  });
}
// ------------------------------------------------------------------------------------------------------------ drawing
let isWaiting = false, isChartOld = true;
// Draws the page in the next frame. Scrolling needs other rows at most, and no other chart.
function render({ type } = {}) {
  if (type === "scroll" && isCovered()) return;
  isChartOld ||= type !== "scroll";
  if (!isWaiting) requestAnimationFrame(() => { isWaiting = false; draw(); });
  isWaiting = true;
}

function draw() {
  const { status, route } = state, now = stoppedAt ?? performance.now();
  [state.since, state.treeSince] = [Math.max(now - statusAt, 0), Math.max(now - treeAt, 0)];
  document.title = [route.id, status?.node, "Doorward"].filter(Boolean).join(" · ");
  main.classList.toggle("stale", Boolean(state.lostAt));
  const isReady = route.view === "edit" || (status && !state.isOfOtherView);
  const content = isReady ? views[route.view](state) : [h("p#wait.empty", "Asking the server…")];
  morphChildren(head, [header(state)]);
  morphChildren(main, [h("div#banners", banners(state)), ...content.flat(Infinity).filter(Boolean)]);
  morphChildren(foot, footer(state));
  if (dialog.open) morphChildren(dialog, dialogContent());
  if (isChartOld) drawChart(state);
  isChartOld = false;
}

const KEYS = { "/": "search", "j k ↓ ↑": "move", Enter: "open", "← →": "fold and unfold servers", s: "sort again",
  p: "pause, or go on", Esc: "back", "?": "this help" };
const help = () => [h("h2#dialog-title", "Keys"), h("dl.run",
  Object.entries(KEYS).map(([key, what]) => [h("dt", h("kbd", key)), h("dd", what)]))];
// The dialog shows the row in `state.detail`, or else the help.
const dialogContent = () => [h("form#dialog-close", { method: "dialog" }, h("button", { "aria-label": "Close" }, "×")),
  h("div#dialog-body", state.detail ? details(state) : help())];
function openDialog(detail) {
  state.detail = detail;
  morphChildren(dialog, dialogContent());
  dialog.showModal();
}
// ------------------------------------------------------------------------------------------------- what the user does
function go(href, isBack) {
  const stays = isUnsaved() && !confirm("Leave, and lose your changes?");
  if (stays ? isBack : !isBack) history.pushState(null, "", stays ? state.route.href : href);
  if (stays) return;
  Object.assign(state, { route: readRoute(), isOfOtherView: true, history: null, seen: [], holder: "", named: "" });
  openDocument(state.route, render);
  state.chosen = state.route.id || state.chosen;
  ["clients", "children", "resources"].forEach(forget);
  isChartOld = true;
  clearTimeout(typing);
  connect();
  draw();
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
}

// Opens a row: a resource has a view, others a dialog with all that is known.
const open = (id, key) => key && (id === "resources" ? go(resourceLink(key)) : openDialog({ table: id, key }));
const fold = (key, isFolded) => { state.folds = new Map(state.folds).set(key, isFolded); };

// What a button with `data-do` does.
const acts = {
  ...editActs, sort: ({ of, column }) => sortBy(of, Number(column)), sortAgain: ({ of }) => sortAgain(of),
  fold: ({ fold: key }, button) => fold(key, button.getAttribute("aria-expanded") === "true"),
  range: ({ range }) => { [state.range, isChartOld] = [Number(range), true]; }, help: () => openDialog(null),
  pause: () => {
    [state.isPaused, stoppedAt] = state.isPaused ? [false, null] : [true, performance.now()];
    connect();
  },
};

addEventListener("click", (event) => {
  const [link, button, row] = ["a[href]", "[data-do]", "tr[data-key]"].map((it) => event.target.closest(it));
  const href = link?.getAttribute("href"), hasModifier = event.metaKey || event.ctrlKey || event.shiftKey;
  if (event.target === dialog) dialog.close();
  if (link && !hasModifier && /^\/(resource|limits)?(\?|$)/.test(href)) {
    event.preventDefault();
    go(href);
  } else if (button) acts[button.dataset.do](button.dataset, button);
  else if (row && !link && getSelection().isCollapsed) {
    const id = row.closest("table").dataset.table, { key } = row.dataset;
    putCursor(id, key);
    if (id === "resources") choose(key);
    else open(id, key);
  }
  if (button || row) draw();
});

let typing = 0, newSearch = "";
addEventListener("input", (event) => {
  const { target } = event, id = target.dataset.search, text = target.value.trim();
  const asked = { clients: "holder", resources: "named" }[id];
  if (id) search(id, text);
  else typed(event);
  draw();
  // Only the server can tell which names match if the page has a part of them.
  if (!asked || !(tableState(id).spec.isPartial || state[asked])) return;
  clearTimeout(typing);
  typing = setTimeout(() => { [state[asked], newSearch] = [text, id]; connect(); }, 300);
});
addEventListener("change", typed);
addEventListener("beforeunload", (event) => isUnsaved() && event.preventDefault());

// Returns the table that keys act on: the focused one, or the main one of the view.
function activeTable() {
  const usual = { front: state.status?.resources.length > 1 ? "resources" : "tree",
    resource: document.getElementById("clients") ? "clients" : "children" }[state.route.view] ?? state.route.view;
  const id = document.activeElement?.closest("[data-table]")?.dataset.table ?? usual;
  return tableState(id) && document.getElementById(id) ? id : null;
}

const withTable = (act) => () => { const id = activeTable(); if (id) act(id); };
const move = (by) => withTable((id) => {
  moveCursor(id, by);
  document.querySelector(`[data-table="${id}"]`).focus({ preventScroll: true });
  if (id === "resources" && tableState(id).cursor) choose(tableState(id).cursor);
});
const foldAtCursor = (isFolded) => withTable((id) => {
  const it = tableState(id), row = id === "tree" && it.byKey.get(it.cursor);
  if (row?.kind === "server" && row.folded !== null) fold(row.key, isFolded);
});
const keys = {
  j: move(1), k: move(-1), ArrowDown: move(1), ArrowUp: move(-1), PageDown: move(15), PageUp: move(-15),
  Home: move(-1e9), End: move(1e9), ArrowLeft: foldAtCursor(true), ArrowRight: foldAtCursor(false), p: acts.pause,
  Enter: withTable((id) => open(id, tableState(id).cursor)), s: withTable(sortAgain), "?": acts.help,
  "/": withTable((id) => document.querySelector(`[data-search="${id}"]`).focus()),
  Escape: () => state.route.view !== "front" && go("/"),
};

addEventListener("keydown", (event) => {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
  if (target.matches("[data-edit], [data-secret]")) return typedKey(event);
  const isSearch = target.matches("input"), isPressed = key === "Enter" && target.matches("a, button");
  if (isSearch ? !leaveSearch(target, key) : !keys[key] || isPressed) return;
  event.preventDefault();
  if (!isSearch) keys[key]();
  draw();
});

// In a search field, Enter and the arrow lead to the rows, and Escape out of the search.
function leaveSearch(field, key) {
  if (!["Escape", "Enter", "ArrowDown"].includes(key)) return false;
  if (key === "Escape") field.value = "";
  if (key === "Escape") field.dispatchEvent(new Event("input", { bubbles: true }));
  const id = field.dataset.search, name = field.value.trim();
  document.querySelector(`[data-table="${id}"]`).focus();
  if (key !== "Escape") move(0)();
  // The page may list a part of the resources. This one may exist, too.
  if (key === "Enter" && id === "resources" && name && !tableState(id).cursor) go(resourceLink(name));
  return true;
}

addEventListener("popstate", () => go(location.href, true));
for (const name of ["scroll", "resize"]) addEventListener(name, render, { capture: true, passive: true });
document.addEventListener("visibilitychange", connect);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawChart);
setInterval(() => document.hidden || state.isPaused || render(), 1_000);
openDocument(state.route, render);
connect();
draw();
