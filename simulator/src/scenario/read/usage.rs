//! What clients use of a resource, and their limiters.

use std::time::Duration;

use doorward_client::limiter::demand::AdaptiveWants;
use doorward_client::state::Mode;
use doorward_documents::keys::near;
use doorward_documents::tree::Value;
use doorward_engine::amount::Amount;
use doorward_engine::id::ResourceId;
use doorward_engine::template::Templates;

use crate::scenario::demand::Demand;
use crate::scenario::read::Reader;
use crate::scenario::read::clients::Around;
use crate::scenario::read::form::{At, Map, some_of};
use crate::scenario::usage::{Limiter, Usage, Work};

/// What there is to say of each further resource.
const KEYS: [&str; 5] = ["resource", "priority", "mode", "wants", "limiter"];

const EXAMPLE: &str = "[{resource: other, wants: 5}]";

const MODES: [(&str, Mode); 3] = [
    ("safe", Mode::Safe),
    ("pessimistic", Mode::Pessimistic),
    ("optimistic", Mode::Optimistic),
];

/// The most permits of a piece of work.
const PERMITS_MAX: i128 = 1_000_000;

/// The least that a request costs: with less, requests would come all the time.
const COST_MIN: f64 = 1e-6;

/// The shortest window in which demand is measured.
const WINDOW_MIN: Duration = Duration::from_millis(100);

/// The largest headroom.
const HEADROOM_MAX: f64 = 1_000.0;

impl Reader<'_> {
    /// What is wanted over time.
    pub(super) fn wants(&mut self, map: &Map<'_>, duration: Duration) -> Option<Demand> {
        let demand = map.need("wants", "how much each of them wants", &mut self.problems);
        demand.and_then(|at| self.demand(&at, duration))
    }

    /// What a map says of a resource, besides what is wanted of it.
    pub(super) fn usage(
        &mut self,
        map: &Map<'_>,
        demand: Option<Demand>,
        templates: Option<&Templates>,
    ) -> Option<Usage> {
        let resource = self.resource(map, templates);
        let priority = map.get("priority");
        let priority = priority.map_or(Some(0), |at| self.priority(&at));
        let mode = map.get("mode");
        let mode = mode.map_or(Some(Mode::Safe), |at| at.word(&MODES, &mut self.problems));
        let limiter = match map.get("limiter") {
            Some(at) => self.limiter(&at).map(Some),
            None => Some(None),
        };
        Some(Usage {
            resource: resource?,
            priority: priority?,
            mode: mode?,
            demand: demand?,
            limiter: limiter?,
        })
    }

    /// What else they use.
    pub(super) fn also(
        &mut self,
        map: &Map<'_>,
        first: Option<&Usage>,
        around: &Around<'_>,
    ) -> Option<Vec<Usage>> {
        let Some(at) = map.get("also") else {
            return Some(Vec::new());
        };
        let list = at.list(EXAMPLE, &mut self.problems)?;
        let mut also: Vec<Usage> = Vec::new();
        for at in &list {
            let map = at.map("{resource: other, wants: 5}", &mut self.problems)?;
            map.check_keys(&KEYS, &mut self.problems);
            let demand = self.wants(&map, around.duration);
            if let (Some(Demand::Trace(_)), Some(at)) = (&demand, map.get("wants")) {
                let message = "is a trace, whose clients are a group of their own";
                self.problems.wrong(&at, message);
                return None;
            }
            let usage = self.usage(&map, demand, around.templates)?;
            let mut known = first.into_iter().chain(&also);
            if known.any(|known| known.resource == usage.resource) {
                let message = format!(
                    "{:?} is used already; give another one",
                    usage.resource.as_str()
                );
                let at = map.get("resource").unwrap_or_else(|| at.clone());
                self.problems.wrong(&at, message);
                return None;
            }
            also.push(usage);
        }
        Some(also)
    }

    fn limiter(&mut self, at: &At<'_>) -> Option<Limiter> {
        let map = at.map("{rate: 1}", &mut self.problems)?;
        let kind = map.only_one(&["rate", "concurrency"], &mut self.problems)?;
        let value = map.need(kind, "what each piece of work takes", &mut self.problems);
        let work = match (kind, value) {
            ("rate", Some(at)) => {
                map.check_keys(&["rate", "adaptive"], &mut self.problems);
                let cost = at.number(COST_MIN, Amount::MAX.get(), &mut self.problems);
                cost.map(|cost| Work::Rate { cost })
            }
            (_, Some(at)) => {
                map.check_keys(&["concurrency", "for", "adaptive"], &mut self.problems);
                let permits = at.whole(1, PERMITS_MAX, &mut self.problems);
                let takes = map.need("for", "how long it takes", &mut self.problems);
                let takes = takes.and_then(|at| {
                    let takes = at.span(&mut self.problems)?;
                    if takes.1.is_zero() {
                        self.problems.refuse(&at, "more than nothing");
                        return None;
                    }
                    Some(takes)
                });
                permits.zip(takes).and_then(|(permits, takes)| {
                    let permits = u32::try_from(permits).ok()?;
                    Some(Work::Concurrency { permits, takes })
                })
            }
            (_, None) => None,
        };
        let adaptive = match map.get("adaptive") {
            Some(at) => self.adaptive(&at).map(Some),
            None => Some(None),
        };
        Some(Limiter {
            work: work?,
            adaptive: adaptive?,
        })
    }

    fn adaptive(&mut self, at: &At<'_>) -> Option<AdaptiveWants> {
        let map = at.map("{window: 10s}", &mut self.problems)?;
        map.check_keys(&["window", "headroom", "least", "most"], &mut self.problems);
        let usual = AdaptiveWants::default();
        let window = match map.get("window") {
            Some(at) => {
                let window = at.duration(&mut self.problems)?;
                if window < WINDOW_MIN {
                    self.problems.refuse(&at, "at least 100ms");
                    return None;
                }
                Some(window)
            }
            None => Some(usual.window),
        };
        let headroom = match map.get("headroom") {
            Some(at) => at.number(1.0, HEADROOM_MAX, &mut self.problems),
            None => Some(usual.headroom),
        };
        let mut amount = |key: &str, usual: f64| match map.get(key) {
            Some(at) => at.amount(&mut self.problems),
            None => Some(usual),
        };
        let (least, most) = (amount("least", usual.least), amount("most", usual.most));
        Some(AdaptiveWants {
            window: window?,
            headroom: headroom?,
            least: least?,
            most: most?,
        })
    }

    /// The resource that is asked for; the only one there is, if templates leave no choice.
    fn resource(&mut self, map: &Map<'_>, templates: Option<&Templates>) -> Option<ResourceId> {
        let known = templates.map_or_else(Vec::new, |templates| {
            let globs = templates.iter();
            globs.map(|t| t.identifier_glob.as_str()).collect()
        });
        let only = match known.as_slice() {
            [only] if !only.contains(['*', '?', '[', '\\']) => Some(*only),
            _ => None,
        };
        let at = match (map.get("resource"), only) {
            (None, Some(only)) => return ResourceId::new(only).ok(),
            // What there is is not known: it is no news that nothing can be chosen for them.
            (None, None) if templates.is_none() => return None,
            _ => {
                let mut what = "what they ask for".to_owned();
                if !known.is_empty() {
                    let known = some_of(known.iter().copied());
                    what = format!("{what}; there are templates for {known}");
                }
                map.need("resource", &what, &mut self.problems)?
            }
        };
        let id = match ResourceId::new(&at.text(&mut self.problems)?) {
            Ok(id) => id,
            Err(cause) => {
                self.problems.wrong(&at, cause.to_string());
                return None;
            }
        };
        if templates.is_some_and(|templates| templates.find(&id).is_none()) {
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
            self.problems.wrong(&at, message);
            return None;
        }
        Some(id)
    }

    fn priority(&mut self, at: &At<'_>) -> Option<i64> {
        let number = match at.node.value {
            Value::Whole(number) => i64::try_from(number).ok(),
            _ => None,
        };
        if number.is_none() {
            let expected = "a whole number; higher ones come first";
            self.problems.refuse(at, expected);
        }
        number
    }
}
