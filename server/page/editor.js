// The editor of templates and of rules, and the plan of a text: what it would give each holder.
//
// Apply needs a plan of the same text, and names the version that the text was made from. If somebody has written
// another version meanwhile, the user decides between the two. The text, its plan and the way back last until the view
// is left; the token lasts until the page is.
import { address, amount, ask, bold, count, h, isLess, link, note, pill, plainTable, quiet, several, short, span, sub,
  timeOfDay } from "./parts.js";
import { banner, resourceLink } from "./views.js";

const PLANNED_SHOWN = 20, LINES_SHOWN = 200, COMPARISONS_MAX = 1_000_000, PLAN_MS = 60_000;

// The document of the view: its kind and domain; `found`, as the server has it; `text`, as the user has it; `planned`,
// the answer about a text, with that text and version; `former`, what Undo applies; `rival`, a version that somebody
// else wrote meanwhile; and the request that runs.
let it = null, token = "", redraw = null, mayLeave = false;
export function openDocument({ view, kind: named, domain }, draw) {
  const kind = { edit: named || "templates", templates: "shadow" }[view];
  [it, redraw] = [kind ? { kind, domain, text: "", why: "", shown: PLANNED_SHOWN } : null, draw];
  if (kind) load();
}

// A text area knows no other line ends.
const plain = (text) => text.replace(/\r\n?/g, "\n");
export const isUnsaved = () => Boolean(it?.found) && it.text !== plain(it.found.text);
const isPlanned = ({ planned, text, found }) => planned?.text === text && planned.version === found.version;
const needsForce = () => it.planned?.plan?.warnings.some((of) => of.needs_force);
const mayApply = () => isUnsaved() && isPlanned(it) && !it.planned.problems.length && !it.found.refusal && !it.rival
  && (it.isIntended || !needsForce());
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

const read = ({ kind, domain }) => ask(address("/document", { kind, domain }), { token });
const load = () => run("Asking the server…", async (at) => {
  at.found = await read(at);
  at.text = plain(at.found.text);
});
const plan = () => run("Planning…", async (at) => {
  const { kind, domain, text, found: { version } } = at, body = { kind, domain, text: kind === "shadow" ? "" : text };
  const answered = await ask("/document/plan", { body, token, wait: PLAN_MS });
  Object.assign(at, { planned: { ...answered, text, version, at: Date.now() }, shown: PLANNED_SHOWN,
    isIntended: false });
});

// Writes a text over the version `seen`. `before`: the text that Undo would apply then.
async function write(at, { text, seen, why }, done, before) {
  const { kind, domain, found } = at, body = { kind, domain, text, seen, why };
  const { version, revision } = await ask("/document/apply", { body, token }).catch(async (error) => {
    if (error.status === 409) Object.assign(at, { former: null, rival: await read(at) });
    throw error;
  });
  const isTyped = at.text !== plain(found.text) && at.text !== text;
  Object.assign(at, { found: { ...found, text, version }, text: isTyped ? at.text : plain(text), planned: null, why: "",
    former: before === null ? null : { text: before, seen: version }, needsToken: false,
    done: `${done}${revision === null ? "" : `, as revision ${revision}`}.` });
  // The text is applied, whether or not the list of revisions can be read.
  await read(at).then(({ revisions: rows }) => { at.found.revisions = rows; }, () => null);
}

const apply = () => run("Applying…", (at) => write(at, { text: at.text, seen: at.found.version, why: at.why.trim() },
  "Applied", at.found.version ? at.found.text : null));
const undo = () => run("Undoing…", (at) => write(at, { ...at.former, why: "undo" }, "Undone without a plan", null));
const decide = (text) => Object.assign(it, { found: it.rival, rival: null, failure: null, text });

function goToLine({ line }) {
  const field = document.getElementById("edit-text"), start = it.text.split("\n", line - 1).join("\n").length;
  field.focus({ preventScroll: true });
  field.setSelectionRange(start + (line > 1), start + (line > 1));
  document.getElementById(`edit-line-${line}`)?.scrollIntoView({ block: "center" });
}
// Takes another text, unless the user keeps an unsaved one.
const replace = (text) => { if (!isUnsaved() || confirm("Drop your text?")) it.text = plain(text); };
const former = ({ number: revision }) => run("Reading the revision…", async ({ kind, domain }) => {
  replace((await ask(address("/document", { kind, domain, revision }), { token })).text);
});
const theirs = () => confirm("Drop your text?") && decide(plain(it.rival.text));
export const editActs = { plan, apply, undo, goToLine, former, theirs, mine: () => decide(it.text),
  intended: () => { it.isIntended = !it.isIntended; }, morePlanned: () => { it.shown += PLANNED_SHOWN; } };

// Takes what is typed into a field of the editor. With another token, the caller may have another role.
export function typed({ type, target: { dataset: { edit, secret }, value } }) {
  if (edit && type === "input") it[edit] = value;
  else if (secret) token = value.trim();
  if (secret && type === "change" && it.kind !== "shadow" && (!it.found || it.found.refusal)) load();
}

// Tab indents. After Escape, it leaves the text.
export function typedKey(event) {
  const { key, shiftKey, target } = event;
  if (key === "Tab" && !shiftKey && !mayLeave && target.matches("textarea:read-write")) {
    event.preventDefault();
    document.execCommand("insertText", false, "  ");
  }
  mayLeave = key === "Escape";
}
// ------------------------------------------------------------------------------------------------------- the views
const act = (name, text, isEnabled = true) => h(`button#edit-${name}`, {
  "data-do": name, disabled: isEnabled && !it.busy ? null : "" }, text);
export function editor() {
  const { kind, domain, found, text, busy } = it, isRules = kind === "rules";
  const [back, name, from] = isRules ? ["/", `Rules of ${domain}`, "Tree and rules"]
    : ["/?view=templates", "Templates", "Templates in force"];
  const head = [h("p#crumb.crumb", link(back, `← ${from}`)), h("h1#title", name, found && quiet(found.place))];
  if (!found) return [head, h("div#edit-notes", notes())];
  const numbers = Array.from(text.split("\n"), (_, index) => index + 1), why = { "data-edit": "why", value: it.why };
  const wrong = new Set(isPlanned(it) ? it.planned.problems.map(({ line }) => line).filter(Boolean) : []);
  const marks = [...wrong].map((line) => h(`i#edit-line-${line}`, { style: { "--at": String(line - 1) } }));
  return [
    head, h("div#edit-tools.toolbar",
      act("plan", isRules ? "Check" : "Plan", !it.rival), act("apply", "Apply", mayApply()),
      h("input#edit-why", { ...why, placeholder: "Reason of the change", "aria-label": "Reason", autocomplete: "off" }),
      act("undo", "Undo", Boolean(it.former)), h("a.button", { href: back }, "Close"),
      h("span.quiet", { role: "status" }, busy ?? (isPlanned(it) && summary(it.planned)))),
    h("div#edit-notes", { role: "status" }, notes()),
    h("div#edit-box.card", h("div.edit", marks, h("pre", { "aria-hidden": "true" }, numbers.join("\n")),
      h("textarea#edit-text", { "data-edit": "text", rows: numbers.length, wrap: "off", spellcheck: "false",
        "aria-label": name, "aria-describedby": "edit-hint", readonly: found.refusal ? "" : null }, text))),
    h("p#edit-hint.sub", "Tab indents by two spaces. Escape, then Tab, leaves the text."),
    h("div#edit-changes", changes()), h("div#edit-answer", { class: isPlanned(it) ? null : "stale" }, answer()),
    h("div#edit-revisions", found.revisions.length > 0 && plainTable("Revisions", [
      ["Revision", "name", (of) => [h("b", of.number), " ", h("button", { "data-do": "former", "data-number": of.number,
        disabled: found.refusal ? "" : null }, "Load"), sub(of.kind)]], ["Who", "text", (of) => of.who],
      ["When", "text", (of) => day(of.when_unix_ms)], ["Why", "why", (of) => of.why]], found.revisions)),
  ];
}
const summary = ({ problems: { length } }) => (length ? several(length, "problem") : "No problems");
const day = (at) => new Date(at).toLocaleString("en-GB");
function notes() {
  const { found, rival, failure, done } = it, by = rival?.revisions[0];
  const who = by && `${by.who} wrote revision ${by.number} on ${day(by.when_unix_ms)}${by.why ? `: ${by.why}` : ""}.`;
  return [
    !found && !failure && note(it.busy), found?.refusal && note(pill("warn", "read-only"), found.refusal),
    rival && banner("Another writer was faster.", [who ?? failure, " Your text is still here. ",
      act("theirs", "Load theirs"), " ", act("mine", "Keep mine"), quiet("Yours needs a plan and replaces theirs.")]),
    failure && !rival && banner("The request failed:", failure), done && note(pill("good", "done"), done),
    (found ? found.takes_token && (found.refusal || it.needsToken) : it.needsToken) && tokenField()];
}
const tokenField = () => note(h("label", "Operator's token ", h("input#edit-token", { type: "password",
  "data-secret": "token", autocomplete: "off" })), quiet("It is forgotten when you close or reload the page."));

// Returns the lines that one text has and the other lacks, as [sign, line]: all but their longest common sequence.
function difference(before, after) {
  const [a, b] = [before, after].map((text) => text.split("\n")), lines = [];
  while (a.length && a.at(-1) === b.at(-1)) [a.pop(), b.pop()];
  while (a.length && a[0] === b[0]) [a.shift(), b.shift()];
  if (a.length * b.length > COMPARISONS_MAX) return [...a.map((it) => ["−", it]), ...b.map((it) => ["+", it])];
  // most[i][j]: the length of this sequence from lines i and j on.
  const most = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      most[i][j] = a[i] === b[j] ? most[i + 1][j + 1] + 1 : Math.max(most[i + 1][j], most[i][j + 1]);
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (a[i] === b[j]) [i, j] = [i + 1, j + 1];
    else if (j === b.length || most[i + 1]?.[j] >= most[i][j + 1]) lines.push(["−", a[i++]]);
    else lines.push(["+", b[j++]]);
  }
  return lines;
}

function changes() {
  const lines = difference(plain(it.found.text), it.text), removed = lines.filter(([sign]) => sign === "−").length;
  const text = `${several(removed, "line")} removed, ${several(lines.length - removed, "line")} added`;
  return lines.length > 0 && [h("h2", "Changes", quiet(text)), h("pre.card.changes", { tabindex: "0" },
    lines.slice(0, LINES_SHOWN).map(([sign, line]) => h(sign === "+" ? "ins" : "del", `${sign} ${line}\n`)),
    lines.length > LINES_SHOWN && "…")];
}

// What the server said of the text: its problems, or its plan.
function answer() {
  const { planned, kind, shown } = it, { problems, plan: of, at } = planned ?? {};
  const old = planned && !isPlanned(it) && note(pill("warn", "old"), "The text has changed since.");
  const intended = { "data-do": "intended", "aria-pressed": String(Boolean(it.isIntended)), class: "choice" };
  const problem = ({ line, message }) => h("li", line && kind !== "shadow" ? h("button", { "data-do": "goToLine",
    "data-line": line }, `Line ${line}`) : h("b", line ? `Line ${line}` : "Whole text"), " ", message);
  const warning = ({ line, field, message }) => problem({ line, message: field ? `${field}: ${message}` : message });
  if (problems?.length) return [h("h2", several(problems.length, "problem")), old,
    h("ul.card.problems", problems.map(problem))];
  if (!of) return planned && [old, note(pill("good", "valid"), "The text has no problems.")];
  const number = several(of.resources.length, "resource"), more = of.resources.length - shown;
  return [h("h2", "Plan", quiet(`${number} in use would change, and ${count(of.unchanged)} would not, `,
    `by the demand of ${timeOfDay(at)} at ${of.node}`)), old,
  of.missing && note(pill("warn", "note"), of.missing),
  of.warnings.length > 0 && [h("ul.card.problems", of.warnings.map(warning)), needsForce() && kind !== "shadow"
    && note(h("button#edit-intended", intended, "This is intended"), quiet("Hardly meant. Apply needs this word."))],
  of.resources.slice(0, shown).map(plannedResource),
  more > 0 && act("morePlanned", `Show more of ${several(more, "other resource")}`)];
}

const textOf = (value) => (value === null ? "none" : typeof value === "number" ? amount(value) : value);
// Two numbers that look the same in short have all their digits.
const change = (...values) => {
  const [now, then] = values.map(textOf), isLong = now === then && values[0] !== values[1];
  return values[0] === values[1] ? now : isLong ? values.map(count).join(" → ") : `${now} → ${then}`;
};
function plannedResource(of) {
  const { resource_id: id, holds_in_ms: usual, holds_max_ms: most, learning_remaining_ms: learns } = of;
  const terms = [`capacity ${change(of.capacity, of.planned_capacity)}`, `wants ${amount(of.wants)}`,
    `granted ${change(of.granted, of.planned)}`, change(of.algorithm, of.planned_algorithm),
    `template ${change(of.template, of.planned_template)}`];
  const effect = [`${count(of.losing_count)} lose, ${count(of.gaining_count)} gain, ${count(of.same_count)} stay`,
    usual !== null && `holds in ${span(usual)}`,
    most !== null ? `at the latest in ${span(most)}` : usual === null ? "it never holds" : "with no latest time",
    learns !== null && `nothing grows before learning mode ends in ${span(learns)}`,
    of.cut_wants_count > 0 && `${several(of.cut_wants_count, "holder")} may get more: only some wants count now`];
  const share = (row) => (isLess(row.planned, row.granted) ? short : String)(change(row.granted, row.planned));
  return h("section.planned", plainTable(id, [
    ["Client", "name", (row) => bold(row.holder)], ["Server", "text", (row) => row.server],
    ["Wants", "n", (row) => amount(row.wants)], ["Has → gets", "n", share], ["Why", "why", (row) => row.why],
  ], [...of.losing, ...of.gaining], [h("h3", link(resourceLink(id), id)),
    h("p.lead", terms.join(" · "), h("br"), effect.filter(Boolean).join(" · ")),
    of.unnamed.map(([server, why]) => note(pill("warn", "not named"), `Clients of ${server}: ${why}`))]));
}

// The plan of the shadow templates, on request.
export const shadow = () => it?.found && h("section#shadow",
  h("div.toolbar", h("h2", `Shadow templates from ${it.found.place}`), act("plan", "Plan"), quiet(it.busy)),
  note("They grant nothing. ", it.found.refusal), it.failure && note(pill("bad", "failed"), it.failure),
  it.needsToken && tokenField(), answer());
