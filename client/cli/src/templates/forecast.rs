//! Forecast of a change: warnings, and the plan for resources in use.

use std::io::{self, Write};

use doorward_documents::warnings::{InForceBefore, Warning, warnings};
use doorward_documents::{Located, PROBLEMS_SHOWN_MAX};
use doorward_pages::terminal::{Cell, Palette, Table, Tone, cell};
use doorward_session::visible::line;
use serde_json::{Value, json};

use crate::documents::author::plain;
use crate::documents::flags::Search;
use crate::documents::{Change, Effect, counted, refusal};
use crate::failure::Failure;
use crate::granted::{number, span};
use crate::output::{self, Out};
use crate::templates::plan::{self, NAMED_MAX, NamedClient, Planned, ResourcePlan};

/// Warnings that people are shown at most.
const WARNINGS_SHOWN: usize = 20;

/// Child servers of a resource that are listed: those whose amounts change most.
const CHILDREN_MAX: usize = 10;

/// Reasons that are listed why clients are not named.
const UNNAMED_MAX: usize = 3;

/// Warns, and asks a server for the plan.
pub(super) async fn effect(change: Change<'_, Located>, asks: bool) -> io::Result<Effect> {
    let text = change.document.text();
    let plan = match change.store {
        Some(store) if asks => Some(plan::ask(store.common, &text, change.search).await),
        _ => None,
    };
    let truth = match (change.store, &plan) {
        (Some(store), Some(Ok(Planned { plan, .. }))) => {
            plan::elsewhere(&plan.node, &plan.source, store)
        }
        // A server of an earlier release makes no plans, but says what it reads.
        (Some(store), Some(Err(Failure::No(_)))) => plan::root_elsewhere(store).await,
        _ => None,
    };
    let plan = plan.map(|plan| plan.map_err(|failure| failure.to_string()));
    let known = plan.as_ref().and_then(|plan| plan.as_ref().ok());
    let problem = plan.as_ref().and_then(|plan| plan.as_ref().err());
    let unknown = match known {
        Some(it) => it.plan.missing(span),
        None => problem.map(|_| "no server says who holds leases".to_owned()),
    };
    let before = InForceBefore {
        templates: change.old.map(|old| &old.templates),
        in_use: match known {
            Some(it) if truth.is_none() => &it.plan.resources,
            _ => &[],
        },
        unknown: unknown.as_deref(),
        was_in_force: change.was_in_force,
    };
    let mut effect = warned(&change.document.name, &warnings(change.new, &before));
    let mut out = output::buffer();
    if let Some(truth) = &truth {
        effect.refusal = Some(refusal(truth));
        out.say(Tone::Bad, &line(truth))?;
    }
    if let Some(problem) = problem {
        let problem = plain(problem).replace('\n', "; ");
        let unknown = "only texts are compared; what clients would have is unknown";
        out.say(Tone::Partial, &format!("{unknown}: {problem}"))?;
    }
    if let Some(known) = known {
        write_plan(&mut out, known, change.search)?;
    }
    effect.text = out.into_inner();
    let listed = known.map(|plan| match &change.search.resource {
        None => plan.plan.resources.as_slice(),
        Some(_) => plan.found.as_slice(),
    });
    let fields = json!({
        "resources": listed,
        "resources_unaffected": known.map(|it| it.plan.unchanged),
        "resources_problem": problem,
        "unheard_ms": known.and_then(|it| it.plan.unheard_ms),
        "gone_children": known.map(|it| &it.plan.gone),
        "resources_templates_source": known.map(|it| &it.plan.source),
    });
    output::extend(&mut effect.json, fields);
    Ok(effect)
}

/// Returns the effect of warnings.
fn warned(name: &str, warnings: &[Warning]) -> Effect {
    let said = |warning: &Warning| {
        let problem = &warning.problem;
        let (line, column) = (problem.line, problem.column);
        let stands = match warning.stands {
            true => " (so it is in force already)",
            false => "",
        };
        format!("{name}:{line}:{column}: warning: {problem}{stands}")
    };
    let tone = |it: &Warning| match it.needs_force() {
        true => Tone::Bad,
        false => Tone::Partial,
    };
    let shown = warnings.iter().take(WARNINGS_SHOWN);
    let mut lines: Vec<_> = shown.map(|it| (tone(it), said(it))).collect();
    let more = warnings.len().saturating_sub(WARNINGS_SHOWN);
    if more > 0 {
        lines.push((Tone::Plain, format!("and {} more", counted_warnings(more))));
    }
    let mut forced = warnings.iter().filter(|it| it.needs_force());
    let first = forced.next().map(said);
    let more = match forced.count() {
        0 => String::new(),
        count => format!(" (and {} more)", counted_warnings(count)),
    };
    let listed = warnings.iter().take(PROBLEMS_SHOWN_MAX);
    let texts = listed.clone().map(|it| it.problem.to_string());
    let text = Some(texts.collect::<Vec<_>>().join("\n")).filter(|_| !warnings.is_empty());
    let listed: Vec<Value> = listed.map(Warning::to_json).collect();
    Effect {
        warnings: lines,
        refusal: first.map(|first| refusal(&format!("{first}{more}"))),
        json: json!({"warning": text, "warnings": listed}),
        ..Effect::default()
    }
}

fn counted_warnings(count: usize) -> String {
    let (count, s) = counted(count);
    format!("{count} warning{s}")
}

fn write_plan(out: &mut Out<impl Write>, planned: &Planned, search: &Search) -> io::Result<()> {
    let Planned { plan, found } = planned;
    let who = &line(&plan::planner(&plan.node, &plan.source)).into_owned();
    if let Some(text) = plan.missing(span) {
        out.say(Tone::Partial, &line(&text))?;
    }
    if let Some(resource) = &search.resource {
        return match found {
            Some(found) => write_resource(out, found, Some(search)),
            None => {
                let resource = line(resource);
                writeln!(out, "{resource} is not in use at {who}, or does not change")
            }
        };
    }
    if plan.resources.is_empty() {
        return match plan.unchanged {
            0 => writeln!(out, "nothing is in use at {who}"),
            count => writeln!(out, "in use at {who}: {count}, none of them affected"),
        };
    }
    writeln!(out, "in use at {who}:")?;
    for resource in plan.resources.iter().take(NAMED_MAX) {
        write_resource(out, resource, None)?;
    }
    let more = plan.resources.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        let how = "diff --resource ID shows one";
        writeln!(out, "  and {more} more that are affected; {how}")?;
    }
    match plan.unchanged {
        0 => Ok(()),
        count => writeln!(out, "  resources without a change: {count}"),
    }
}

fn write_resource(
    out: &mut Out<impl Write>,
    plan: &ResourcePlan,
    search: Option<&Search>,
) -> io::Result<()> {
    let root = &plan.root;
    let to = |before: f64, after: Option<f64>| match after {
        Some(after) if after == before => number(before),
        Some(after) => format!("{} → {}", number(before), number(after)),
        None => format!("{} → none", number(before)),
    };
    let id = out.paint(Tone::Strong, &line(&root.resource_id));
    writeln!(
        out,
        "  {id}  capacity {}  wants {}  granted {}  reserved {}  clients {}",
        to(root.capacity, root.planned_capacity),
        number(root.wants),
        to(root.granted, Some(root.planned)),
        number(root.reserved),
        root.clients_count
    )?;
    for (tone, text) in words(plan) {
        out.say(tone, &format!("    {}", line(&text)))?;
    }
    write_children(out, plan)?;
    match search.map(|search| &search.client) {
        Some(Some(text)) if plan.holders.is_empty() => {
            writeln!(out, "    no client has {:?} in its name", line(text))
        }
        Some(_) => write_clients(out, plan.holders.iter()),
        None => {
            let (losing, gaining) = (&plan.losing, &plan.gaining);
            write_clients(out, losing.iter().chain(gaining))?;
            let shown = (losing.len() + gaining.len()) as u64;
            let all = root.losing_count.saturating_add(root.gaining_count);
            match all.saturating_sub(shown) {
                0 => Ok(()),
                more => {
                    let names = "--client TEXT those with it in their name";
                    let text =
                        format!("    and {more} more; diff --resource ID lists all, {names}");
                    out.say(Tone::Quiet, &text)
                }
            }
        }
    }
}

/// Returns what there is to say about a resource as a whole.
fn words(plan: &ResourcePlan) -> Vec<(Tone, String)> {
    let root = &plan.root;
    let mut words = Vec::new();
    let mut say = |tone, text: String| words.push((tone, text));
    if let (Some(old), Some(new)) = (&root.template, &root.planned_template)
        && old != new
    {
        let text = format!("takes the template {new:?} instead of {old:?}");
        say(Tone::Partial, text);
    }
    match &root.planned_algorithm {
        None => {
            let then = "its leases run down, and requests are refused";
            say(Tone::Bad, format!("no template matches any more: {then}"));
        }
        Some(new) if *new != root.algorithm => {
            let text = format!("divided by {new} instead of {}", root.algorithm);
            say(Tone::Partial, text);
        }
        Some(_) => {}
    }
    if root.algorithm == "BUDGET" && root.planned_capacity.is_some_and(|it| it < root.reserved) {
        let then = "holders keep what they have, and get no more before the window ends";
        say(Tone::Partial, then.to_owned());
    }
    let (losing, gaining, same) = (root.losing_count, root.gaining_count, root.same_count);
    let known = losing.saturating_add(gaining).saturating_add(same);
    if known > 0 {
        let tone = if losing == 0 { Tone::Good } else { Tone::Bad };
        let of = match plan.unnamed.is_empty() {
            true => String::new(),
            false => format!(" of {}", root.clients_count),
        };
        let s = if known == 1 && of.is_empty() { "" } else { "s" };
        let all = format!("{known}{of} client{s}");
        let text = format!("{all}: losing {losing}, gaining {gaining}, unchanged {same}");
        say(tone, text);
    }
    let within = plan.holds_in_ms.map(|it| format!("within {}", span(it)));
    let last = "when the last lease that shrinks has ended";
    let at_most = plan.holds_max_ms.map(span);
    let at_most = at_most.map(|it| format!("in {it}, {last}"));
    let times: Vec<String> = within.into_iter().chain(at_most).collect();
    if !times.is_empty() {
        let times = times.join("; at the latest ");
        say(Tone::Partial, format!("this holds {times}"));
    }
    if let Some(learning) = root.learning_remaining_ms.map(span) {
        let then = "nothing grows before, and holders that have not reported are missing";
        let text = format!("learning mode for up to {learning}: {then}");
        say(Tone::Partial, text);
    }
    let cut = root.cut_wants_count;
    if cut > 0 {
        let then = "they may get more than planned, and others less";
        let text = format!("{cut} want more than counts now: {then}");
        say(Tone::Partial, text);
    }
    let estimated = plan.estimated.first();
    let also = estimated.map(|it| format!("; below {it}, too, so all amounts are estimates"));
    if also.is_some() || root.children.iter().any(plan::is_cut) {
        let also = also.unwrap_or_default();
        let text = format!("subclients_max: not all clients count{also}");
        say(Tone::Partial, text);
    }
    words
}

fn write_children(out: &mut Out<impl Write>, plan: &ResourcePlan) -> io::Result<()> {
    let palette = out.palette;
    let mut children: Vec<_> = plan.root.children.iter().collect();
    if children.is_empty() {
        return Ok(());
    }
    children.sort_by(|a, b| {
        let [a, b] = [a, b].map(|it| (it.planned - it.granted).abs());
        b.total_cmp(&a)
    });
    let header = ["child server", "clients", "wants", "has", "gets"];
    let mut table = Table::new(header, 1..5, palette).in_lines(4);
    for child in children.iter().take(CHILDREN_MAX) {
        let clients = match plan::is_cut(child) {
            true => &format!("{} of {}", child.counted_clients, child.clients_count),
            false => &number(child.clients_count),
        };
        table.add([
            palette.cell(Tone::Strong, &child.child),
            cell(clients),
            cell(number(child.wants)),
            cell(number(child.granted)),
            changed(child.granted, child.planned, palette),
        ]);
    }
    table.write(out)?;
    let (more, s) = counted(children.len().saturating_sub(CHILDREN_MAX));
    if more > 0 {
        writeln!(out, "    and {more} more child server{s}")?;
    }
    for (child, problem) in plan.unnamed.iter().take(UNNAMED_MAX) {
        let text = format!("the clients of {child} are not known: {problem}");
        out.say(Tone::Partial, &format!("    {}", line(&text)))?;
    }
    let (more, s) = counted(plan.unnamed.len().saturating_sub(UNNAMED_MAX));
    if more > 0 {
        writeln!(out, "    nor those of {more} more child server{s}")?;
    }
    Ok(())
}

fn write_clients<'a>(
    out: &mut Out<impl Write>,
    clients: impl Iterator<Item = &'a NamedClient>,
) -> io::Result<()> {
    let palette = out.palette;
    let mut clients = clients.peekable();
    if clients.peek().is_none() {
        return Ok(());
    }
    let header = ["client", "at", "wants", "has", "gets", "why"];
    let mut table = Table::new(header, 2..5, palette).in_lines(4);
    for NamedClient { server, client } in clients {
        table.add([
            palette.cell(Tone::Strong, &client.holder),
            cell(server),
            cell(number(client.wants)),
            cell(number(client.granted)),
            changed(client.granted, client.planned, palette),
            cell(&client.why),
        ]);
    }
    table.write(out)
}

fn changed(before: f64, after: f64, palette: Palette) -> Cell {
    let tone = match after.total_cmp(&before) {
        std::cmp::Ordering::Less => Tone::Bad,
        std::cmp::Ordering::Equal => return cell(number(after)),
        std::cmp::Ordering::Greater => Tone::Good,
    };
    palette.cell(tone, number(after))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// A forecast of templates with these globs and the capacity 0. Only the first one is in force.
    fn forecast(globs: &[String]) -> Effect {
        let located = |globs: &[String]| {
            let mut text = "resources:".to_owned();
            for glob in globs {
                let algorithm = "{kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5}";
                let fields =
                    format!("identifier_glob: {glob}, capacity: 0, algorithm: {algorithm}");
                write!(text, "\n- {{{fields}}}").unwrap();
            }
            doorward_documents::locate_bytes(text.as_bytes(), "test").unwrap()
        };
        let old = located(&globs[..1]).templates;
        let before = InForceBefore {
            templates: Some(&old),
            ..InForceBefore::default()
        };
        warned("t.yaml", &warnings(&located(globs), &before))
    }

    fn written(forecast: &Effect) -> String {
        let mut out = output::buffer();
        forecast.write_warnings(&mut out).unwrap();
        String::from_utf8(out.into_inner()).unwrap()
    }

    #[test]
    fn a_warning_names_its_place_and_the_refusal_what_to_do() {
        let found = forecast(&["a", "b", "c"].map(str::to_owned));
        let is_zero = "capacity: is 0: no client gets anything of its resources";
        assert_eq!(
            written(&found),
            format!(
                "t.yaml:2:34: warning: template 1 (\"a\"): {is_zero} (so it is in force already)\n\
                 t.yaml:3:34: warning: template 2 (\"b\"): {is_zero}\n\
                 t.yaml:4:34: warning: template 3 (\"c\"): {is_zero}\n"
            )
        );
        assert_eq!(
            found.refusal.as_deref().unwrap(),
            format!(
                "nothing was written. t.yaml:3:34: warning: template 2 (\"b\"): {is_zero} (and 1 warning \
                 more). Correct it; or, if it is intended, give --force, which --yes does not imply"
            )
        );
        let json = &found.json["warnings"];
        assert_eq!(json[1]["kind"], "no_capacity");
        assert_eq!(
            (&json[1]["line"], &json[1]["template"]),
            (&json!(3), &json!(2))
        );
        assert_eq!(
            (&json[1]["identifier_glob"], &json[1]["field"]),
            (&json!("b"), &json!("capacity"))
        );
        let forced = [&json[0]["needs_force"], &json[1]["needs_force"]];
        assert_eq!(forced, [false, true]);
    }

    #[test]
    fn many_warnings_are_counted() {
        let globs: Vec<String> = (0..50).map(|number| format!("r{number}")).collect();
        let said = written(&forecast(&globs));
        assert_eq!(said.lines().count(), 21);
        assert!(said.ends_with("and 30 warnings more\n"), "{said}");
    }
}
