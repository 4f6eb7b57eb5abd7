//! What a client uses of a resource, and how it keeps to what it may use.

use std::time::Duration;

use doorward_client::limiter::demand::AdaptiveWants;
use doorward_client::state::Mode;
use doorward_documents::form::{Map, some_of};
use doorward_documents::keys::near;
use doorward_engine::amount::Amount;
use doorward_engine::id::ResourceId;

use crate::scenario::declared::{FieldRow, Fields};
use crate::scenario::demand::{Demand, demand};
use crate::scenario::fault::Span;
use crate::scenario::read::Reader;
use crate::scenario::shape::{
    Shape, amount, at_least, integer, number, record, resource, span, whole, word,
};

/// The most permits of a piece of work.
const PERMITS_MAX: i128 = 1_000_000;

/// The least that a request costs: with less, requests would come all the time.
const COST_MIN: f64 = 1e-6;

/// The shortest window in which demand is measured.
const WINDOW_MIN: Duration = Duration::from_millis(100);

/// The largest headroom.
const HEADROOM_MAX: f64 = 1_000.0;

record! {
    /// A resource that each client of a group uses.
    #[derive(Clone, Debug)]
    pub struct Usage ("{resource: other, wants: 5}") {
        /// What they ask for. A template must match it.
        resource: ResourceId = known_resource(),
            or_from("the only template's, if that is an id", only_resource);
        /// Higher ones come first, with `PRIORITY_BANDS`.
        priority: i64 = integer("higher ones come first"), or(0);
        /// What they use without a lease: `safe` (the safe capacity), `pessimistic` (nothing), `optimistic` (what
        /// they want).
        mode: Mode = word(), or(Mode::Safe);
        /// What each of them wants over time. With a limiter: the load that comes to it.
        demand as "wants": Demand = demand(), needed("how much each of them wants");
        /// What keeps their use within the lease. Absent: all that they may use and want is used at once.
        limiter: Option<Limiter> = record(), optional("none");
    }
}

record! {
    /// A limiter of the client library, and what comes to it.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Limiter ("{rate: 1}") {
        /// Which one, and what each piece of work is.
        work: Work = (), flattened();
        /// The client asks for what it measures at its limiter. Absent: for its load.
        adaptive: Option<AdaptiveWants> = record(), optional("for the load");
    }
}

kinds! {
    /// What each piece of work takes.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum Work, beside() {
        /// The library's rate limiter, to which requests of that cost come: `wants` is asked for per second.
        Rate as "rate" {
            /// Above 0.
            cost as "rate": f64 = number(COST_MIN, Amount::MAX.get()),
                needed("what each piece of work takes");
        };
        /// Its concurrency limiter, to which work comes that takes so many permits for a time: `wants` would be in
        /// flight if nothing held it up.
        Concurrency as "concurrency" {
            /// At least 1.
            permits as "concurrency": u32 = whole(1, PERMITS_MAX), needed("what each piece of work takes");
            /// How long it takes.
            takes as "for": Span = span(), needed("how long it takes"),
                check(|at, takes: &Span, reader| if takes.1.is_zero() {
                    reader.problems.refuse(at, "more than nothing");
                });
        };
    }
}

record! {
    impl AdaptiveWants ("{window: 10s}") {
        /// Demand is measured over this span.
        window: Duration = at_least(WINDOW_MIN), or(AdaptiveWants::default().window);
        /// What is asked for is what was measured times this.
        headroom: f64 = number(1.0, HEADROOM_MAX), or(AdaptiveWants::default().headroom);
        /// Never less is asked for.
        least: f64 = amount(), or(AdaptiveWants::default().least);
        /// Never more is asked for.
        most: f64 = amount(), or(AdaptiveWants::default().most);
    }
}

/// The rows of what is said of measured demand.
pub(super) fn adaptive_rows() -> Vec<FieldRow> {
    AdaptiveWants::rows()
}

impl Work {
    /// How long a piece of work may last after it was admitted.
    pub fn longest(&self) -> Duration {
        match self {
            Self::Rate { .. } => Duration::ZERO,
            Self::Concurrency { takes, .. } => takes.1,
        }
    }
}

/// The globs of all templates.
fn globs<'r>(reader: &'r Reader<'_>) -> Vec<&'r str> {
    let templates = reader.templates.iter().flat_map(|it| it.iter());
    templates.map(|it| it.identifier_glob.as_str()).collect()
}

/// The only resource there is, if templates leave no choice.
fn only_resource(map: &Map<'_>, reader: &mut Reader<'_>) -> Option<ResourceId> {
    let known = globs(reader);
    if let [only] = known.as_slice()
        && !only.contains(['*', '?', '[', '\\'])
    {
        return ResourceId::new(only).ok();
    }
    // What there is is not known: it is no news that nothing can be chosen for them.
    reader.templates.as_ref()?;
    let what = match known.is_empty() {
        true => "what they ask for".to_owned(),
        false => format!(
            "what they ask for; there are templates for {}",
            some_of(known.into_iter())
        ),
    };
    map.need(&["resource"], &what, &mut reader.problems)?;
    None
}

/// A resource for which there is a template.
fn known_resource() -> Shape<ResourceId> {
    Shape::new("id", |at, reader| {
        let id = resource().read(at, reader)?;
        let Some(templates) = &reader.templates else {
            return Some(id);
        };
        if templates.find(&id).is_some() {
            return Some(id);
        }
        let known = globs(reader);
        let hint = near(id.as_str(), &known);
        let hint = hint.map_or_else(String::new, |glob| format!("; did you mean {glob}?"));
        let message = if known.is_empty() {
            "there are no templates; give one for it".to_owned()
        } else {
            format!(
                "no template is for {:?}; there are templates for {}{hint}",
                id.as_str(),
                some_of(known.into_iter())
            )
        };
        reader.problems.wrong(at, message);
        None
    })
}
