//! A line of `doorward watch`: what may be used, why it is no more, and until when. Every line says all
//! of it, so that the last one is enough.

use std::io::Write;
use std::mem::Discriminant;
use std::time::Duration;

use doorward::{Capacity, Holding, LimitedBy, Resource, ResourceError, Source};
use serde::Serialize;

use crate::common::{Common, Output};
use crate::failure::Failure;
use crate::flags::WatchFlags;
use crate::granted::{amount_of, millis, number, tone_of};
use crate::output;
use crate::why::{Explanation, HoldingOutput, LEARNING_ADVICE};
use doorward_clock::wall;
use doorward_pages::numbers::typed_span as span;
use doorward_pages::terminal::{Palette, Tone};

/// A line, as `--output json` prints it. Its field names are an interface.
#[derive(Serialize)]
struct WatchOutput<'a> {
    /// Milliseconds since the Unix epoch.
    time_ms: u64,
    #[serde(flatten)]
    holding: HoldingOutput<'a>,
    /// Time until the capacity changes without another answer. Absent: it does not.
    changes_in_ms: Option<u64>,
    /// Capacity after that change; -1: no limit.
    capacity_then: f64,
    /// Start of the problem, in milliseconds since the Unix epoch.
    problem_since_ms: Option<u64>,
}

/// Content of the last line.
#[derive(Clone, Copy, PartialEq)]
struct Printed {
    capacity: Capacity,
    source: Source,
    limited_by: Option<LimitedBy>,
    wants: f64,
    problem: Option<Discriminant<ResourceError>>,
}

/// Prints lines, and remembers what they said.
pub(super) struct Printer<'a> {
    common: &'a Common,
    flags: &'a WatchFlags,
    palette: Palette,
    printed: Option<Printed>,
    /// Start of the problem.
    since: Option<Duration>,
    /// Whether it was said what learning mode is.
    advised: bool,
}

impl<'a> Printer<'a> {
    pub(super) fn new(common: &'a Common, flags: &'a WatchFlags) -> Self {
        Self {
            common,
            flags,
            palette: common.color.of_stdout(),
            printed: None,
            since: None,
            advised: false,
        }
    }

    /// A line, if it says something new.
    pub(super) fn print_if_new(
        &mut self,
        resource: &Resource,
        holding: &Holding,
    ) -> Result<(), Failure> {
        if self.printed == Some(printed(resource, holding)) {
            return Ok(());
        }
        self.print(resource, holding)
    }

    /// A line.
    pub(super) fn print(&mut self, resource: &Resource, holding: &Holding) -> Result<(), Failure> {
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
        self.write(resource.wants(), holding, problem)?;
        let is_learning = Explanation::of_holding(holding).is_learning();
        if is_learning && !self.advised && self.common.output != Output::Json {
            self.advised = true;
            let advice = self.palette.paint(Tone::Quiet, LEARNING_ADVICE);
            writeln!(output::stdout(), "{advice}")?;
        }
        Ok(())
    }

    fn write(&self, wants: f64, holding: &Holding, problem: Option<String>) -> Result<(), Failure> {
        let mut out = output::stdout();
        let now = wall();
        if self.common.output == Output::Json {
            let resource = &self.flags.ask.resource;
            let change = WatchOutput {
                time_ms: millis(now),
                holding: HoldingOutput::new(resource, wants, holding, problem),
                changes_in_ms: holding.changes_in.map(millis),
                capacity_then: amount_of(holding.then),
                problem_since_ms: self.since.map(millis),
            };
            return Ok(output::json(&mut out, &change)?);
        }
        let palette = self.palette;
        let capacity = amount_of(holding.capacity);
        let capacity = palette.paint(tone_of(capacity, wants), &number(capacity));
        let time = palette.paint(Tone::Quiet, &clock(now));
        let because = because(holding, problem.as_deref(), self.since);
        let wants = number(wants);
        Ok(writeln!(out, "{time}  {capacity} of {wants}  ({because})")?)
    }
}

fn printed(resource: &Resource, holding: &Holding) -> Printed {
    Printed {
        capacity: holding.capacity,
        source: holding.source,
        limited_by: holding.limited_by,
        wants: resource.wants(),
        problem: resource.problem().as_ref().map(std::mem::discriminant),
    }
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
    let words = Explanation::of_holding(holding).words();
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
