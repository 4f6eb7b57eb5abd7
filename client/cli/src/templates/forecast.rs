//! Forecast of a change: warnings, and the plan for resources in use.

use std::io::{self, Write};

use doorward_documents::Located;
use doorward_pages::numbers::typed_span as span;
use doorward_pages::terminal::palette::{Palette, Tone};
use doorward_pages::terminal::table::{Cell, Table, cell};
use serde_json::{Map, Value, json};

use crate::documents::author::plain;
use crate::documents::{Change, Effect, refusal};
use crate::granted::number;
use crate::templates::plan::{self, ClientsPlan, NAMED_MAX, NamedClient, ResourcePlan, TreePlan};
use crate::templates::warnings::{InForceBefore, Warnings};

/// Forecast of a change.
#[derive(Debug, Default)]
pub(crate) struct Forecast {
    warnings: Warnings,
    /// The plan, or the reason why there is none. None: no server was asked.
    plan: Option<Result<TreePlan, String>>,
    /// Place of the templates that change, if the server that was asked uses other ones.
    unread: Option<String>,
}

impl Forecast {
    /// Warns, and asks a server for the plan.
    pub(super) async fn new(change: Change<'_, Located>, asks: bool) -> Self {
        let (new, store) = (change.new, change.store);
        let old = change.old.map(|old| &old.templates);
        let plan = match store {
            Some(store) if asks => Some(plan::ask(store.common, &change.text, change.search).await),
            _ => None,
        };
        let goes_by = |plan: &TreePlan| store.is_some_and(|store| plan.who.goes_by(store));
        let known = plan.as_ref().and_then(|plan| plan.as_ref().ok());
        let before = InForceBefore {
            templates: old,
            in_use: match known {
                Some(plan) if goes_by(plan) => &plan.resources,
                _ => &[],
            },
        };
        let warnings = Warnings::of(change.name, new, &before);
        let is_unread = known.is_some_and(|plan| !goes_by(plan));
        let unread = store
            .filter(|_| is_unread)
            .map(|store| store.name().to_owned());
        Self {
            warnings,
            plan,
            unread,
        }
    }

    fn planned(&self) -> Option<&TreePlan> {
        self.plan.as_ref()?.as_ref().ok()
    }

    /// Returns where the truth is, if a change here is read by nobody.
    fn truth(&self) -> Option<String> {
        Some(plan::truth(&self.planned()?.who, self.unread.as_ref()?))
    }
}

impl Effect for Forecast {
    fn write_warnings(&self, out: &mut impl Write, palette: Palette) -> io::Result<()> {
        self.warnings.write(out, palette)
    }

    fn refusal(&self) -> Option<String> {
        let unread = self.truth().map(|truth| refusal(&truth));
        unread.or_else(|| self.warnings.refusal())
    }

    fn write(&self, out: &mut impl Write, palette: Palette) -> io::Result<()> {
        if let Some(truth) = self.truth() {
            writeln!(out, "{}", palette.paint(Tone::Bad, &plain(&truth)))?;
        }
        match &self.plan {
            None => Ok(()),
            Some(Err(problem)) => {
                let problem = plain(problem).replace('\n', "; ");
                let message = format!(
                    "only texts are compared; what clients would have is unknown: {problem}"
                );
                writeln!(out, "{}", palette.paint(Tone::Partial, &message))
            }
            Some(Ok(plan)) => write_plan(out, plan, palette),
        }
    }

    fn to_json(&self) -> Map<String, Value> {
        let problem = self.plan.as_ref().and_then(|plan| plan.as_ref().err());
        let plan = self.planned();
        let resources = plan.map(|plan| plan.resources.iter().map(resource_json).collect());
        let fields = [
            ("warning", json!(self.warnings.text())),
            ("warnings", self.warnings.to_json()),
            ("needs_force", json!(self.refusal().is_some())),
            ("resources", resources.unwrap_or(Value::Null)),
            ("resources_unaffected", json!(plan.map(|it| it.unchanged))),
            ("resources_problem", json!(problem)),
            (
                "resources_templates_source",
                json!(plan.map(|it| &it.who.source)),
            ),
        ];
        fields
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect()
    }
}

fn resource_json(plan: &ResourcePlan) -> Value {
    let (root, clients) = (&plan.root, &plan.clients);
    let named = |list: &[NamedClient]| -> Value {
        let list = list.iter();
        let shown = list.map(|NamedClient { server, client }| {
            json!({
                "client": client.holder,
                "server": server,
                "wants": client.wants,
                "granted": client.granted,
                "planned": client.planned,
                "why": client.why,
            })
        });
        shown.collect()
    };
    let children = root.children.iter().map(|child| {
        json!({
            "child": child.child,
            "clients_count": child.clients_count,
            "wants": child.wants,
            "granted": child.granted,
            "planned": child.planned,
            "why": child.why,
        })
    });
    let unnamed = plan.unnamed.iter();
    let unnamed = unnamed.map(|(child, problem)| json!({"child": child, "problem": problem}));
    json!({
        "resource_id": root.resource_id,
        "template": root.template,
        "new_template": root.planned_template,
        "algorithm": root.algorithm,
        "new_algorithm": root.planned_algorithm,
        "capacity": root.capacity,
        "new_capacity": root.planned_capacity,
        "wants": root.wants,
        "granted": root.granted,
        "planned": root.planned,
        "reserved": root.reserved,
        "clients_count": root.clients_count,
        "losing_count": clients.losing_count,
        "gaining_count": clients.gaining_count,
        "same_count": clients.same_count,
        "losing": named(&clients.losing),
        "gaining": named(&clients.gaining),
        "clients": named(&clients.listed),
        "children": children.collect::<Value>(),
        "unnamed": unnamed.collect::<Value>(),
        "holds_in_ms": millis(clients.holds_in()),
        "holds_max_ms": clients.shrinks_max.map(millis),
        "words": words(plan).into_iter().map(|(_, text)| text).collect::<Vec<_>>(),
    })
}

fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn write_plan(out: &mut impl Write, plan: &TreePlan, palette: Palette) -> io::Result<()> {
    let who = &plain(&plan.who.to_string()).into_owned();
    if plan.resources.is_empty() {
        return match plan.unchanged {
            0 => writeln!(out, "nothing is in use at {who}"),
            count => writeln!(out, "in use at {who}: {count}, none of them affected"),
        };
    }
    writeln!(out, "in use at {who}:")?;
    for resource in plan.resources.iter().take(NAMED_MAX) {
        write_resource(out, resource, palette)?;
    }
    let more = plan.resources.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        writeln!(
            out,
            "  and {more} more that are affected; --resource ID shows one"
        )?;
    }
    match plan.unchanged {
        0 => Ok(()),
        count => writeln!(out, "  resources without a change: {count}"),
    }
}

fn write_resource(out: &mut impl Write, plan: &ResourcePlan, palette: Palette) -> io::Result<()> {
    let root = &plan.root;
    let to = |before: f64, after: Option<f64>| match after {
        Some(after) if after == before => number(before),
        Some(after) => format!("{} → {}", number(before), number(after)),
        None => format!("{} → none", number(before)),
    };
    writeln!(
        out,
        "  {}  capacity {}  wants {}  granted {}  reserved {}  clients {}",
        palette.paint(Tone::Strong, &plain(&root.resource_id)),
        to(root.capacity, root.planned_capacity),
        number(root.wants),
        to(root.granted, Some(root.planned)),
        number(root.reserved),
        root.clients_count
    )?;
    for (tone, text) in words(plan) {
        writeln!(out, "    {}", palette.paint(tone, &plain(&text)))?;
    }
    write_children(out, plan, palette)?;
    write_clients(out, &plan.clients, palette)
}

/// Returns what there is to say about a resource as a whole.
fn words(plan: &ResourcePlan) -> Vec<(Tone, String)> {
    let (root, clients) = (&plan.root, &plan.clients);
    let mut words = Vec::new();
    match &root.planned_algorithm {
        None => words.push((
            Tone::Bad,
            "no template matches any more: its leases run down, and requests are refused"
                .to_owned(),
        )),
        Some(algorithm) if *algorithm != root.algorithm => {
            let text = format!("divided by {algorithm} instead of {}", root.algorithm);
            words.push((Tone::Partial, text));
        }
        Some(_) => {}
    }
    let ClientsPlan {
        losing_count: losing,
        gaining_count: gaining,
        same_count: same,
        ..
    } = *clients;
    let known = losing + gaining + same;
    if known > 0 {
        let tone = match losing {
            0 => Tone::Good,
            _ => Tone::Bad,
        };
        let all = root.clients_count;
        let of = match known < all {
            true => format!("{known} of {all}"),
            false => known.to_string(),
        };
        let s = if all.max(known) == 1 { "" } else { "s" };
        let text = format!("{of} client{s}: losing {losing}, gaining {gaining}, unchanged {same}");
        words.push((tone, text));
    }
    if losing + gaining > 0 {
        let (holds, most) = (clients.holds_in(), clients.shrinks_max);
        let most = most.map(|most| span(most.max(holds)));
        let at_most =
            most.map(|most| format!("in {most}, when the last lease that shrinks has ended"));
        let within = root
            .planned_algorithm
            .as_ref()
            .map(|_| format!("within {}", span(holds)));
        let times: Vec<String> = within.into_iter().chain(at_most).collect();
        words.push((
            Tone::Partial,
            format!("this holds {}", times.join("; at the latest ")),
        ));
    }
    if let Some(learning) = clients.learning.filter(|_| gaining > 0) {
        let text = format!(
            "learning mode goes on for up to {}: nothing grows before",
            span(learning)
        );
        words.push((Tone::Partial, text));
    }
    if clients.cut_wants > 0 {
        let text = format!(
            "{} of them want more than wants_max lets count now: if that grows, they may get more",
            clients.cut_wants
        );
        words.push((Tone::Partial, text));
    }
    words
}

fn write_children(out: &mut impl Write, plan: &ResourcePlan, palette: Palette) -> io::Result<()> {
    if plan.root.children.is_empty() {
        return Ok(());
    }
    let header = ["child server", "clients", "wants", "has", "gets"];
    let mut table = Table::new(header, 1..5, palette).in_lines(4);
    for child in &plan.root.children {
        table.add([
            palette.cell(Tone::Strong, plain(&child.child)),
            cell(number(child.clients_count)),
            cell(number(child.wants)),
            cell(number(child.granted)),
            changed(child.granted, child.planned, palette),
        ]);
    }
    table.write(out)?;
    for (child, problem) in &plan.unnamed {
        let text = format!("the clients of {child} are not known: {problem}");
        writeln!(out, "    {}", palette.paint(Tone::Partial, &plain(&text)))?;
    }
    Ok(())
}

/// Writes a table of the clients that were searched for, or of those that lose and gain most.
fn write_clients(out: &mut impl Write, plan: &ClientsPlan, palette: Palette) -> io::Result<()> {
    let listed: Vec<&NamedClient> = match plan.listed.as_slice() {
        [] => plan.losing.iter().chain(&plan.gaining).collect(),
        listed => listed.iter().collect(),
    };
    if listed.is_empty() {
        return Ok(());
    }
    let header = ["client", "at", "wants", "has", "gets", "why"];
    let mut table = Table::new(header, 2..5, palette).in_lines(4);
    for NamedClient { server, client } in &listed {
        table.add([
            palette.cell(Tone::Strong, plain(&client.holder)),
            cell(plain(server)),
            cell(number(client.wants)),
            cell(number(client.granted)),
            changed(client.granted, client.planned, palette),
            cell(plain(&client.why)),
        ]);
    }
    table.write(out)?;
    if plan.listed.is_empty() {
        let shown = u64::try_from(listed.len()).unwrap_or(u64::MAX);
        let more = (plan.losing_count + plan.gaining_count).saturating_sub(shown);
        if more > 0 {
            let text = format!(
                "and {more} more; --resource lists all, --client TEXT those with it in their name"
            );
            writeln!(out, "    {}", palette.paint(Tone::Quiet, &text))?;
        }
    }
    Ok(())
}

fn changed(before: f64, after: f64, palette: Palette) -> Cell {
    let tone = match after.total_cmp(&before) {
        std::cmp::Ordering::Less => Tone::Bad,
        std::cmp::Ordering::Equal => return cell(number(after)),
        std::cmp::Ordering::Greater => Tone::Good,
    };
    palette.cell(tone, number(after))
}
