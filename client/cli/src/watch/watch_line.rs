//! A line of `doorward watch`: what may be used, why it is no more, and until when. Every line says all
//! of it, so that the last one is enough.

use std::io::Write;
use std::mem::Discriminant;
use std::time::Duration;

use doorward::{Capacity, Holding, LimitedBy, Resource, ResourceError, Source};
use serde_json::json;

use crate::common::{Common, Output};
use crate::failure::Result;
use crate::flags::WatchFlags;
use crate::granted::{amount_of, millis, number, tone_of};
use crate::output;
use crate::why::{self, LEARNING_ADVICE};
use doorward_clock::wall;
use doorward_pages::numbers::typed_span as span;
use doorward_pages::terminal::Tone;

/// Content of a line: the capacity, where it is from, why it is no more, what is wanted, and the problem.
type Printed = (
    Capacity,
    Source,
    Option<LimitedBy>,
    f64,
    Option<Discriminant<ResourceError>>,
);

/// Prints lines, and remembers what they said.
pub(super) struct Printer<'a> {
    pub(super) common: &'a Common,
    pub(super) flags: &'a WatchFlags,
    pub(super) resource: &'a Resource,
    printed: Option<Printed>,
    /// Start of the problem.
    since: Option<Duration>,
    /// Whether it was said what learning mode is.
    advised: bool,
}

impl<'a> Printer<'a> {
    pub(super) fn new(common: &'a Common, flags: &'a WatchFlags, resource: &'a Resource) -> Self {
        Self {
            common,
            flags,
            resource,
            printed: None,
            since: None,
            advised: false,
        }
    }

    /// A line, if it says something new.
    pub(super) fn print_if_new(&mut self, holding: &Holding) -> Result {
        if self.printed == Some(printed(self.resource, holding)) {
            return Ok(());
        }
        self.print(holding)
    }

    /// A line.
    pub(super) fn print(&mut self, holding: &Holding) -> Result {
        let resource = self.resource;
        let problem = resource.problem();
        let is_first = self.printed.is_none() && holding.remaining.is_none();
        self.printed = Some(printed(resource, holding));
        let now = wall();
        self.since = problem.is_some().then(|| self.since.unwrap_or(now));
        let problem = match problem {
            Some(problem) => Some(problem.to_string()),
            None if is_first => Some("no answer yet".to_owned()),
            None => None,
        };
        let wants = resource.wants();
        let capacity = amount_of(holding.capacity);
        // The field names are an interface.
        let change = json!({
            "time_ms": millis(now),
            "resource": self.flags.ask.resource,
            "wants": wants,
            "capacity": capacity,
            "source": match holding.source {
                Source::Lease => "lease",
                Source::Mode => "mode",
            },
            "expires_in_ms": holding.remaining.map(millis),
            "limited_by": holding.limited_by.map(why::word),
            "learning_for_ms": holding.learning_for.map(millis),
            "problem": problem,
            "changes_in_ms": holding.changes_in.map(millis),
            "capacity_then": amount_of(holding.then),
            "problem_since_ms": self.since.map(millis),
        });
        output::print(self.common, &change, |out| {
            let has = out.paint(tone_of(capacity, wants), &number(capacity));
            let time = out.paint(Tone::Quiet, &clock(now));
            let because = because(holding, problem.as_deref(), self.since);
            writeln!(out, "{time}  {has} of {}  ({because})", number(wants))
        })?;
        let is_learning = holding.limited_by.is_some_and(LimitedBy::is_learning);
        if is_learning && !self.advised && self.common.output != Output::Json {
            self.advised = true;
            output::stdout().say(Tone::Quiet, LEARNING_ADVICE)?;
        }
        Ok(())
    }
}

fn printed(resource: &Resource, holding: &Holding) -> Printed {
    let problem = resource.problem().as_ref().map(std::mem::discriminant);
    let (capacity, source, limited_by) = (holding.capacity, holding.source, holding.limited_by);
    (capacity, source, limited_by, resource.wants(), problem)
}

/// Returns the reason for the capacity, its end, and the problem.
fn because(holding: &Holding, problem: Option<&str>, since: Option<Duration>) -> String {
    let mut parts = Vec::new();
    match (holding.source, holding.remaining) {
        (Source::Lease, Some(remaining)) => {
            parts.push(format!("lease, expires in {}", span(remaining)));
            // If nothing is wrong it is renewed long before.
            if problem.is_some() {
                let then = without_lease(holding.then);
                parts.push(format!("then {then}"));
            }
        }
        (Source::Lease, None) => parts.push("lease".to_owned()),
        (Source::Mode, _) => {
            let lease = match holding.remaining {
                Some(remaining) => format!("lease of 0, expires in {}", span(remaining)),
                None => "no lease".to_owned(),
            };
            parts.push(format!("{lease}: {}", without_lease(holding.capacity)));
            if let Some(changes_in) = holding.changes_in.filter(|_| holding.remaining.is_none()) {
                let then = number(amount_of(holding.then));
                parts.push(format!("{then} in {}", span(changes_in)));
            }
        }
    }
    let mut said = parts.join(", ");
    let words = why::words(holding.limited_by, holding.learning_for);
    let problem = problem.map(|problem| match since {
        Some(since) => format!("since {}: {problem}", clock(since)),
        None => problem.to_owned(),
    });
    for more in words.into_iter().chain(problem) {
        said += "; ";
        said += &more;
    }
    said
}

/// Returns the capacity without a lease.
fn without_lease(capacity: Capacity) -> String {
    match capacity {
        Capacity::NONE => "nothing, since no safe capacity is known".to_owned(),
        _ => format!("{} by the safe capacity", number(amount_of(capacity))),
    }
}

/// A moment, for people.
fn clock(since_epoch: Duration) -> String {
    humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + since_epoch).to_string()
}

#[cfg(test)]
mod tests;
