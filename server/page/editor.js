// The editor of templates and of rules, and the plan of a text: what it would give each holder.
//
// Apply needs a plan of the same text, and names the version that the text was made from. If somebody has written
// another version meanwhile, the user decides between the two. The text, its plan and the way back last until the view
// is left; the token lasts until the page is.
import { amount, ask, bold, count, h, isLess, link, note, pill, plainTable, quiet, several, short, span, sub,
  timeOfDay } from "./parts.js";

const PLANNED_SHOWN = 20, LINES_SHOWN = 200, COMPARISONS_MAX = 4_000_000, PLAN_MS = 60_000;

// The document of the view: its kind and domain; `found`, as the server has it; `text`, as the user has it; `planned`,
// the answer about a text, with that text and version; `former`, what Undo applies; `rival`, a version that somebody
// else wrote meanwhile; and the request that runs.
let it = null, token = "", redraw = null, mayLeave = false;

export function openDocument({ view, kind, domain }, draw) {
  const of = { edit: kind, templates: "shadow" }[view];
  [it, redraw, mayLeave] = [of ? { kind: of, domain, text: "", why: "", shown: PLANNED_SHOWN } : null, draw, false];
  if (it) load();
}

// A text area knows no other line ends.
const plain = (text) => text.replace(/\r\n?/g, "\n");
export const isUnsaved = () => Boolean(it?.found) && it.text !== plain(it.found.text);
const isPlanned = ({ planned, text, found }) => planned?.text === text && planned.version === found.version;
const mayApply = (of) => isUnsaved() && isPlanned(of) && !of.planned.problems.length && !of.found.refusal && !of.rival;

// ------------------------------------------------------------------------------------------------------- requests
// Runs one request at a time. The view may show another document when the answer comes.
async function run(busy, work) {
  const at = it;
  if (at.busy) return;
  Object.assign(at, { busy, failure: null, done: null });
  await work(at).catch(({ message, status }) => {
    Object.assign(at, { failure: message, needsToken: at.needsToken || status === 401 || status === 403 });
  });
  at.busy = null;
  redraw();
}

const read = ({ kind, domain }) => ask(`/document?${new URLSearchParams({ kind, ...(domain && { domain }) })}`, { token });
const load = () => run("Asking the server…", async (at) => {
  at.found = await read(at);
  at.text = plain(at.found.text);
});

const plan = () => run("Planning…", async (at) => {
  const { kind, domain, text, found: { version } } = at, body = { kind, domain, text: kind === "shadow" ? "" : text };
  at.planned = { ...await ask("/document/plan", { body, token, wait: PLAN_MS }), text, version, at: Date.now() };
  at.shown = PLANNED_SHOWN;
});

// Writes a text over the version `seen`. `before`: the text that Undo would apply then.
async function write(at, { text, seen, why }, done, before) {
  const { kind, domain, found } = at, body = { kind, domain, text, seen, why };
  const { version, revision } = await ask("/document/apply", { body, token }).catch(async (error) => {
    if (error.status === 409) Object.assign(at, { former: null, rival: await read(at) });
    throw error;
  });
  const isTyped = at.text !== plain(found.text) && at.text !== text, number = revision === null ? "" : ` as revision ${revision}`;
  Object.assign(at, { found: { ...found, text, version }, planned: null, why: "", needsToken: false, done: `${done}${number}.`,
    text: isTyped ? at.text : plain(text), former: before === null ? null : { text: before, seen: version } });
  // The text is applied, whether or not the list of revisions can be read.
  await read(at).then(({ revisions: rows }) => { at.found.revisions = rows; }, () => null);
}

const apply = () => run("Applying…", (at) => write(at, { text: at.text, seen: at.found.version, why: at.why.trim() },
  "Applied", at.found.version ? at.found.text : null));
const undo = () => run("Undoing…", (at) => write(at, { ...at.former, why: "undo" }, "Undone without a plan", null));

function decide(text) {
  Object.assign(it, { found: it.rival, rival: null, failure: null, text });
}

function goToLine({ line }) {
  const field = document.getElementById("edit-text"), before = it.text.split("\n").slice(0, line - 1);
  const start = before.reduce((sum, one) => sum + one.length + 1, 0);
  field.focus();
  field.setSelectionRange(start, start);
  document.getElementById("edit-box").scrollTop = (line - 4) * parseFloat(getComputedStyle(field).lineHeight);
}

export const editActs = { plan, apply, undo, goToLine, theirs: () => decide(plain(it.rival.text)),
  mine: () => decide(it.text), morePlanned: () => { it.shown += PLANNED_SHOWN; } };

// Takes what is typed into a field of the editor.
export function typed({ dataset: { edit, secret }, value }) {
  if (secret) token = value.trim();
  else it[edit] = value;
}

// With another token, the caller may have another role.
export const typedAll = ({ dataset: { secret } }) => secret && !(it.found && !it.found.refusal) && load();

// Tab indents. After Escape, it leaves the text.
export function typedKey(event) {
  const { key, shiftKey, target } = event, indents = key === "Tab" && !shiftKey && !mayLeave;
  if (indents && target.matches("textarea:read-write")) {
    event.preventDefault();
    document.execCommand("insertText", false, "  ");
  }
  mayLeave = key === "Escape";
}

// ------------------------------------------------------------------------------------------------------- the views
const act = (name, text, isEnabled = true) => h(`button#edit-${name}`, {
  "data-do": name, disabled: isEnabled && !it.busy ? null : "" }, text);

export function editor() {
  const { kind, domain, found, text, former, rival } = it, isReadOnly = found?.refusal ? "" : null;
  const back = kind === "rules" ? "/" : "/?view=templates", name = kind === "rules" ? `Rules of ${domain}` : "Templates";
  const title = [h("p#crumb.crumb", link(back, kind === "rules" ? "← Tree and rules" : "← Templates in force")),
    h("h1#title", name, found && quiet(found.place))];
  if (!found) return [title, h("div#edit-notes", notes())];
  const lines = text.split("\n").length, problems = it.planned?.problems ?? [];
  const marks = isPlanned(it) ? problems.filter(({ line }) => line > 0 && line <= lines) : [];
  return [
    title,
    h("div#edit-tools.toolbar", act("plan", kind === "rules" ? "Check" : "Plan", !rival),
      act("apply", "Apply", mayApply(it)),
      h("input#edit-why", { "data-edit": "why", placeholder: "Reason, for the revision", "aria-label": "Reason",
        value: it.why, autocomplete: "off", maxlength: 500 }),
      act("undo", "Undo", Boolean(former)), h("a.button", { href: back }, "Close"), quiet(it.busy)),
    h("div#edit-notes", { role: "status" }, notes()),
    h("div#edit-box.card", h("div.edit", marks.map(({ line }) => h("i", { style: { "--at": String(line - 1) } })),
      h("pre", { "aria-hidden": "true" }, Array.from({ length: lines }, (_, index) => index + 1).join("\n")),
      h("textarea#edit-text", { "data-edit": "text", rows: lines, wrap: "off", spellcheck: "false", "aria-label": name,
        autocapitalize: "off", "aria-describedby": "edit-hint", readonly: isReadOnly }, text))),
    h("p#edit-hint.sub", "Tab indents by two spaces. Escape, then Tab, leaves the text."),
    h("div#edit-answer", { class: it.planned && !isPlanned(it) ? "stale" : null }, answer()),
    h("div#edit-changes", changes()), h("div#edit-revisions", found.revisions.length > 0 && revisions(found)),
  ];
}

function notes() {
  const { found, rival, failure, done, needsToken } = it, by = rival?.revisions[0];
  const who = by && `${by.who} wrote revision ${by.number} on ${day(by.when)}${by.why ? `: ${by.why}` : ""}.`;
  return [
    !found && !failure && note(it.busy),
    found?.refusal && note(pill("warn", "read-only"), found.refusal),
    rival ? h("section.banner", h("strong", "Another writer was faster."), ` ${who ?? failure} Your text is still here. `,
      act("theirs", "Load theirs"), " ", act("mine", "Keep mine"), quiet("Yours needs a new plan, and replaces theirs."))
      : failure && h("section.banner", h("strong", "The server refuses:"), ` ${failure}`),
    done && note(pill("good", "done"), done),
    (needsToken || found?.refusal) && note(h("label", "Operator's token ", h("input#edit-token", { type: "password",
      "data-secret": "token", autocomplete: "off" })), quiet("It is forgotten when you leave or reload the page.")),
  ];
}

const day = (when) => (Number.isNaN(Date.parse(when)) ? when : new Date(when).toLocaleString("en-GB"));
const revisions = ({ revisions: rows }) => plainTable("Revisions", [
  ["Revision", "name", (of) => [h("b", of.number), sub(of.kind)]], ["Who", "text", (of) => of.who],
  ["When", "text", (of) => day(of.when)], ["Why", "why", (of) => of.why]], rows);

// The lines of a text that another one lacks, and those that it adds, as [sign, line]. Equal lines at both ends go first;
// the longest common sequence of the rest stays.
let compared = {};

function difference(before, after) {
  if (compared.before === before && compared.after === after) return compared.lines;
  const [a, b] = [before, after].map((text) => text.split("\n")), lines = [];
  while (a.length && b.length && a.at(-1) === b.at(-1)) [a.pop(), b.pop()];
  const start = a.findIndex((line, index) => line !== b[index]), same = start < 0 ? a.length : start;
  const [old, fresh] = [a.slice(same), b.slice(same)], width = fresh.length + 1;
  const isLong = old.length * fresh.length > COMPARISONS_MAX;
  // most[i * width + j]: length of the longest common sequence from lines i and j on.
  const most = new Uint32Array(isLong ? 0 : (old.length + 1) * width);
  for (let i = old.length - 1; i >= 0 && !isLong; i--) {
    for (let j = width - 2; j >= 0; j--) most[i * width + j] = old[i] === fresh[j] ? most[(i + 1) * width + j + 1] + 1
      : Math.max(most[(i + 1) * width + j], most[i * width + j + 1]);
  }
  for (let i = 0, j = 0; i < old.length || j < fresh.length;) {
    const isSame = !isLong && i < old.length && old[i] === fresh[j];
    if (isSame) [i, j] = [i + 1, j + 1];
    else if (j >= fresh.length || (i < old.length && (isLong || most[(i + 1) * width + j] >= most[i * width + j + 1])))
      lines.push(["−", old[i++]]);
    else lines.push(["+", fresh[j++]]);
  }
  compared = { before, after, lines };
  return lines;
}

function changes() {
  const lines = difference(plain(it.found.text), it.text), removed = lines.filter(([sign]) => sign === "−").length;
  const text = `${several(removed, "line")} removed, ${several(lines.length - removed, "line")} added`;
  const more = lines.length - LINES_SHOWN;
  return lines.length > 0 && [h("h2", "Changes", quiet(text)), h("pre.card.changes", { tabindex: "0" },
    lines.slice(0, LINES_SHOWN).map(([sign, line]) => h(sign === "+" ? "ins" : "del", `${sign} ${line}\n`)),
    more > 0 && `… and ${several(more, "other line")}`)];
}

// What the server said of the text: its problems, or its plan.
function answer() {
  const { planned, kind } = it;
  if (!planned) return null;
  const { problems, plan: of } = planned, [first] = problems;
  const old = !isPlanned(it) && note(pill("warn", "old"), "The text has changed since.");
  const where = (line) => (line ? `Line ${line}` : "Whole text");
  if (first) return [h("h2", several(problems.length, "problem")), old, h("ul.card.problems", problems.map((one) => h("li",
    one.line && kind !== "shadow" ? h("button", { "data-do": "goToLine", "data-line": one.line }, where(one.line))
      : h("b", where(one.line)), " ", one.message)))];
  if (!of) return [old, note(pill("good", "valid"), "The text has no problems.")];
  const { resources, unchanged } = of, more = resources.length - it.shown;
  const number = `${several(resources.length, "resource")} in use would change, ${count(unchanged)} would not`;
  return [
    h("h2", "Plan", quiet(`${number}; by the demand of ${timeOfDay(planned.at)} at ${of.node}`)), old,
    [of.missing, ...of.warnings].filter(Boolean).map((text) => note(pill("warn", "note"), text)),
    resources.slice(0, it.shown).map(plannedResource),
    more > 0 && act("morePlanned", `Show more of ${several(more, "other resource")}`),
  ];
}

const change = (now, then, text = amount) => (now === then ? text(now)
  : `${now === null ? "none" : text(now)} → ${then === null ? "none" : text(then)}`);
const holds = ({ holds_in_ms: usual, holds_max_ms: most }) => (usual === null && most === null ? "it never holds"
  : [usual !== null && `holds in ${span(usual)}`, most !== null ? `in ${span(most)} at the latest`
    : "or later without a bound"].filter(Boolean).join(", "));

function plannedResource(of) {
  const name = (text) => text, { cut_wants_count: cut, learning_remaining_ms: learns } = of;
  const head = [`capacity ${change(of.capacity, of.planned_capacity)}`, `wants ${amount(of.wants)}`,
    `granted ${change(of.granted, of.planned)}`, change(of.algorithm, of.planned_algorithm, name),
    `template ${change(of.template, of.planned_template, name)}`].join(" · ");
  const who = [[of.losing_count, "lose"], [of.gaining_count, "gain"], [of.same_count, "stay"]];
  const text = [who.map(([number, what]) => `${count(number)} ${what}`).join(", "), holds(of),
    learns !== null && `nothing grows before learning mode ends in ${span(learns)}`,
    cut > 0 && `${several(cut, "holder")} may get more: only a part of their wants counts now`];
  return h("section.planned", plainTable(of.resource_id, [
    ["Client", "name", (row) => bold(row.holder)], ["Server", "text", (row) => row.server],
    ["Wants", "n", (row) => amount(row.wants)],
    ["Has → gets", "n", (row) => (isLess(row.planned, row.granted) ? short : h.bind(null, "span"))(
      change(row.granted, row.planned))],
    ["Why", "why", (row) => row.why],
  ], [...of.losing, ...of.gaining], [h("h3", link(`/resource?id=${encodeURIComponent(of.resource_id)}`, of.resource_id)),
    h("p.lead", head, h("br"), text.filter(Boolean).join(" · ")),
    of.unnamed.map(([server, why]) => note(pill("warn", "not named"), `Clients of ${server}: ${why}`))]));
}

// The plan of the shadow templates, on request.
export const shadow = () => it?.found && h("section#shadow", h("div.toolbar", h("h2", `Shadow templates from ${it.found.place}`),
  act("plan", "Plan"), quiet(it.busy)), note("They grant nothing. ", it.found.refusal),
it.failure && note(pill("bad", "refused"), it.failure), answer());
