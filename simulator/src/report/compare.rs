//! Two recordings side by side: every figure of both, which is better, and what makes them hard to
//! compare. Where they differ in shape (other resources, nodes, clients, lengths) they are compared
//! as far as they can be, and what differs is said first.

mod page;
mod terminal;

use crate::recording::{Checker, Recording, ResourceRecording, Verdict};
use crate::report::figures::{FIGURES, Figure, Unit};
use crate::report::shortage_rows::{Shift, shifts};
use crate::report::text::printable;
use crate::report::verdicts;
use crate::report::wait_rows::{WAITS, is_shown};
use doorward_pages::numbers::{NONE, count, measured, percent, points, seconds, several};

pub use page::{page, write_page};
pub use terminal::write;

/// One of two recordings.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// What it is called: where it was read from, for instance.
    pub name: &'a str,
    /// What was recorded.
    pub recording: &'a Recording,
}

/// Below this part of a value two are the same.
const SAME: f64 = 1e-3;

/// What makes a difference to clients, as a part of what they want.
const MET_DIFFERS: f64 = 0.005;

/// Which of two is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Winner {
    A,
    B,
    /// They are the same, or as good.
    None,
}

impl Winner {
    /// By what each costs.
    fn of(a: Option<f64>, b: Option<f64>) -> Self {
        match (a, b) {
            (Some(a), Some(b)) if !is_same(a, b) && a < b => Self::A,
            (Some(a), Some(b)) if !is_same(a, b) && b < a => Self::B,
            _ => Self::None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::None => "",
        }
    }
}

/// A figure, or what a checker found, of both.
#[derive(Clone, Debug, PartialEq)]
struct ComparedRow {
    name: String,
    a: String,
    b: String,
    /// Of B from A; of limits what is set.
    difference: String,
    winner: Winner,
    /// A limit holds in one and not in the other.
    turns: bool,
}

/// A resource that both have.
struct ComparedResource<'a> {
    id: &'a str,
    a: &'a ResourceRecording,
    b: &'a ResourceRecording,
    figures: Vec<ComparedRow>,
    /// What utilisation misses, by what clients waited for. Empty: nothing, in both.
    waits: Vec<ComparedRow>,
    limits: Vec<ComparedRow>,
    /// Clients to whom it makes a difference.
    shifts: Vec<Shift>,
}

/// All that can be compared.
struct Comparison<'a> {
    /// What makes the two different besides how it went: a sentence each.
    shape: Vec<String>,
    resources: Vec<ComparedResource<'a>>,
    /// Figures in which A, and in which B is better.
    wins: (usize, usize),
}

impl<'a> Comparison<'a> {
    fn of(a: &Side<'a>, b: &Side<'a>) -> Self {
        let (a, b) = (a.recording, b.recording);
        let resources: Vec<ComparedResource<'a>> = a
            .resources
            .iter()
            .filter_map(|resource| {
                let other = find(b, &resource.resource)?;
                Some(ComparedResource {
                    id: &resource.resource,
                    a: resource,
                    b: other,
                    figures: FIGURES.iter().map(|f| figure(f, resource, other)).collect(),
                    waits: waits(resource, other),
                    limits: limits(a, b, &resource.resource),
                    shifts: shifts(resource, other),
                })
            })
            .collect();
        let won = |winner| {
            let rows = resources.iter().flat_map(|resource| &resource.figures);
            rows.filter(|row| row.winner == winner).count()
        };
        Self {
            shape: shape(a, b),
            wins: (won(Winner::A), won(Winner::B)),
            resources,
        }
    }

    /// In a sentence, and others before it for what matters more than the count of figures: a limit
    /// that holds in one only, and what clients get.
    fn title(&self) -> String {
        let turned = |winner| {
            let rows = self.resources.iter().flat_map(|resource| &resource.limits);
            rows.filter(|row| row.winner == winner).count()
        };
        let limits = |count| several(count, "limit", "limits");
        let mut title = String::new();
        for (winner, better, worse) in [(Winner::A, "A", "B"), (Winner::B, "B", "A")] {
            match turned(winner) {
                0 => {}
                count => {
                    title += &format!("{better} holds {} that {worse} violates. ", limits(count));
                }
            }
        }
        if let [resource] = self.resources.as_slice() {
            let met = |resource: &ResourceRecording| resource.figures.demand_met;
            let (a, b) = (met(resource.a), met(resource.b));
            if (a - b).abs() >= MET_DIFFERS {
                let (a, b) = (percent(a), percent(b));
                title += &format!("Clients get {a} of what they want in A, {b} in B. ");
            }
        }
        title + &self.figures_title()
    }

    fn figures_title(&self) -> String {
        let figures = |value| several(value, "figure", "figures");
        match self.wins {
            _ if self.resources.is_empty() => {
                "Nothing can be compared: they have no resource in common.".to_owned()
            }
            (0, 0) => "Both are as good.".to_owned(),
            (a, 0) => format!("A is better in {}, B in none.", figures(a)),
            (0, b) => format!("B is better in {}, A in none.", figures(b)),
            (a, b) => format!("A is better in {}, B in {}.", figures(a), count(b)),
        }
    }
}

fn find<'a>(recording: &'a Recording, id: &str) -> Option<&'a ResourceRecording> {
    let mut resources = recording.resources.iter();
    resources.find(|resource| resource.resource == id)
}

fn shape(a: &Recording, b: &Recording) -> Vec<String> {
    let mut shape = Vec::new();
    let mut differ = |what: &str, a: String, b: String| {
        if a != b {
            shape.push(format!("{what}: A {a}, B {b}"));
        }
    };
    differ("scenario", printable(&a.scenario), printable(&b.scenario));
    differ("seed", a.seed.to_string(), b.seed.to_string());
    differ("length", seconds(a.duration_s), seconds(b.duration_s));
    differ(
        "measured every",
        seconds(a.sample_every_s),
        seconds(b.sample_every_s),
    );
    differ(
        "averages from",
        seconds(a.settled_after_s),
        seconds(b.settled_after_s),
    );
    differ("nodes", count(a.nodes.len()), count(b.nodes.len()));
    let levels = |recording: &Recording| {
        let levels = recording.nodes.iter().map(|node| node.level + 1);
        count(levels.max().unwrap_or(0))
    };
    differ("levels", levels(a), levels(b));
    differ("clients", count(a.clients), count(b.clients));
    differ(
        "events from outside",
        count(a.marks.len()),
        count(b.marks.len()),
    );
    for resource in &a.resources {
        let name = printable(&resource.resource);
        match find(b, &resource.resource) {
            None => shape.push(format!("resource {name}: only in A")),
            Some(other) => shape.extend(shape_of(&name, resource, other)),
        }
    }
    for resource in &b.resources {
        if find(a, &resource.resource).is_none() {
            let name = printable(&resource.resource);
            shape.push(format!("resource {name}: only in B"));
        }
    }
    if shape.is_empty() && a.trace_hash == b.trace_hash && !a.trace_hash.is_empty() {
        shape.push("nothing: they have the same trace, so they are the same run".to_owned());
    }
    shape
}

/// How a resource differs that both have.
fn shape_of(name: &str, a: &ResourceRecording, b: &ResourceRecording) -> Vec<String> {
    let mut shape = Vec::new();
    if a.algorithm != b.algorithm {
        shape.push(format!(
            "algorithm of {name}: A {}, B {}",
            a.algorithm, b.algorithm
        ));
    }
    let length = |resource: &ResourceRecording| {
        let length = resource.lease_length_s.map(seconds);
        length.unwrap_or_else(|| NONE.to_owned())
    };
    if a.lease_length_s != b.lease_length_s {
        let (a, b) = (length(a), length(b));
        shape.push(format!("lease length of {name}: A {a}, B {b}"));
    }
    let most = |resource: &ResourceRecording| {
        let capacities = resource.samples.iter().map(|sample| sample.capacity);
        measured(capacities.fold(0.0, f64::max))
    };
    let (a, b) = (most(a), most(b));
    if a != b {
        shape.push(format!("largest capacity of {name}: A {a}, B {b}"));
    }
    shape
}

fn figure(figure: &Figure, a: &ResourceRecording, b: &ResourceRecording) -> ComparedRow {
    let (left, right) = ((figure.get)(&a.figures), (figure.get)(&b.figures));
    ComparedRow {
        name: figure.name.to_owned(),
        a: figure.unit.show(left),
        b: figure.unit.show(right),
        difference: difference(figure.unit, left, right),
        winner: Winner::of(figure.cost(left), figure.cost(right)),
        turns: false,
    }
}

fn waits(a: &ResourceRecording, b: &ResourceRecording) -> Vec<ComparedRow> {
    let shown = WAITS.iter().filter(|wait| {
        let shown = |resource: &ResourceRecording| is_shown((wait.get)(&resource.figures));
        shown(a) || shown(b)
    });
    shown.map(|wait| figure(wait, a, b)).collect()
}

/// What checkers found of a resource in both, where at least one is judged.
fn limits(a: &Recording, b: &Recording, resource: &str) -> Vec<ComparedRow> {
    let of = |recording: &'_ Recording, checker: Checker| {
        let mut verdicts = recording.verdicts.iter();
        verdicts
            .find(|v| v.resource == resource && v.checker == checker)
            .cloned()
    };
    let mut checkers: Vec<Checker> = Vec::new();
    for verdict in a.verdicts.iter().chain(&b.verdicts) {
        let checker = verdict.checker;
        if verdict.resource == resource && verdict.limit.is_some() && !checkers.contains(&checker) {
            checkers.push(checker);
        }
    }
    let shown = |verdict: &Option<Verdict>| match verdict {
        Some(verdict) => format!(
            "{}, {}",
            verdicts::found(verdict),
            verdicts::judgement(verdict)
        ),
        None => "not checked".to_owned(),
    };
    checkers
        .into_iter()
        .map(|checker| {
            let (left, right) = (of(a, checker), of(b, checker));
            // What is violated costs more than what holds; nothing else is judged here.
            let cost = |verdict: &Option<Verdict>| {
                let judged = verdict.as_ref().filter(|verdict| verdict.limit.is_some());
                judged.map(|verdict| if verdict.holds { 0.0 } else { 1.0 })
            };
            let winner = Winner::of(cost(&left), cost(&right));
            ComparedRow {
                name: checker.as_str().to_owned(),
                a: shown(&left),
                b: shown(&right),
                difference: left
                    .or(right)
                    .map(|v| verdicts::limit(&v))
                    .unwrap_or_default(),
                winner,
                turns: winner != Winner::None,
            }
        })
        .collect()
}

fn is_same(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME * a.abs().max(b.abs()) || (a - b).abs() < 1e-9
}

/// Of B from A, in the unit of both; parts in points of percent.
fn difference(unit: Unit, a: f64, b: f64) -> String {
    let by = b - a;
    if !by.is_finite() || is_same(a, b) {
        return "=".to_owned();
    }
    let sign = if by > 0.0 { '+' } else { '-' };
    let by = by.abs();
    let text = match unit {
        Unit::Part => percent(by).replace('%', "points"),
        // What rounds to nothing is no difference: they are shown with two digits.
        Unit::Points if by < 5e-5 => return "=".to_owned(),
        Unit::Points => format!("{} points", points(by)),
        Unit::Seconds => seconds(by),
        Unit::Amount | Unit::Count | Unit::PerMinute => measured(by),
    };
    format!("{sign}{text}")
}

#[cfg(test)]
mod tests;
