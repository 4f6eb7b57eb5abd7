//! Effect of a change on leases: from old templates, new templates and live figures to words. Pure.
//!
//! The figures are those of one moment, and what is said of them is what the server would do if
//! nothing else changed.

use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::templates::{Algorithm, AlgorithmKind, Template, Templates};

use crate::granted::number;
use crate::templates::meaning::{safe, subclients_max, wants_max};
use doorward_pages::numbers::typed_span as span;
use doorward_pages::terminal::palette::Tone;

/// A resource in use, as the server that decides reports it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Live {
    pub(crate) resource: String,
    /// As templates spell it.
    pub(crate) algorithm: String,
    pub(crate) capacity: f64,
    pub(crate) wants: f64,
    /// Sum of the newest grants.
    pub(crate) granted: f64,
    /// The most that may be in use.
    pub(crate) reserved: f64,
    pub(crate) clients: u64,
    pub(crate) lease_length: Duration,
    pub(crate) refresh_interval: Duration,
}

/// Effect on a resource in use.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Effect {
    pub(crate) resource: String,
    /// Its capacity then. None: no template matches it any more.
    pub(crate) capacity: Option<f64>,
    pub(crate) live: Live,
    /// Effect, in words.
    pub(crate) words: Vec<String>,
    pub(crate) tone: Tone,
}

/// Effects on all resources in use.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Effects {
    /// Resources with an effect; those that lose something come first.
    pub(crate) affected: Vec<Effect>,
    /// Number of resources without an effect.
    pub(crate) unaffected: usize,
    /// Number of resources whose capacity is not that of the templates in force: the server follows other ones.
    pub(crate) elsewhere: usize,
}

/// Returns the effects of new templates on resources in use. If `old` is None, the templates in force are unknown, and
/// the server's figures are compared.
pub(crate) fn effects(old: Option<&Templates>, new: &Templates, live: &[Live]) -> Effects {
    let mut effects = Effects::default();
    for live in live {
        let id = ResourceId::new(&live.resource).ok();
        let said = id.and_then(|id| old?.find(&id).map(|template| template.capacity.get()));
        effects.elsewhere += usize::from(said.is_some_and(|said| said != live.capacity));
        match effect(old, new, live) {
            Some(effect) => effects.affected.push(effect),
            None => effects.unaffected += 1,
        }
    }
    effects.affected.sort_by(|a, b| {
        let by_weight = weight(a.tone).cmp(&weight(b.tone));
        by_weight.then_with(|| a.resource.cmp(&b.resource))
    });
    effects
}

const fn weight(tone: Tone) -> u8 {
    match tone {
        Tone::Bad => 0,
        Tone::Partial => 1,
        _ => 2,
    }
}

fn effect(old: Option<&Templates>, new: &Templates, live: &Live) -> Option<Effect> {
    let id = ResourceId::new(&live.resource).ok()?;
    let before = old.map(|old| old.find(&id));
    let after = new.find(&id);
    let mut words = EffectWords::default();
    match (before, after) {
        (Some(None), None) => return None,
        (_, None) => words.gone(live),
        (Some(None), Some(after)) => {
            words.say(Tone::Good, "there is a template for it again".to_owned());
            words.amounts(live, after);
        }
        (Some(Some(before)), Some(after)) => {
            words.amounts_if_changed(live, before, after);
            words.manner(before, after);
        }
        (None, Some(after)) => words.manner_unknown(live, after),
    }
    (!words.words.is_empty()).then(|| Effect {
        resource: live.resource.clone(),
        capacity: after.map(|template| template.capacity.get()),
        live: live.clone(),
        words: words.words,
        tone: words.tone,
    })
}

struct EffectWords {
    words: Vec<String>,
    tone: Tone,
}

impl Default for EffectWords {
    fn default() -> Self {
        Self {
            words: Vec::new(),
            tone: Tone::Good,
        }
    }
}

impl EffectWords {
    fn say(&mut self, tone: Tone, words: String) {
        if weight(tone) < weight(self.tone) {
            self.tone = tone;
        }
        self.words.push(words);
    }

    fn gone(&mut self, live: &Live) {
        let words = format!(
            "no template matches any more: its leases run down within {}, and requests are refused \
             ({} of {})",
            span(live.lease_length),
            clients(live.clients),
            number(live.reserved)
        );
        self.say(Tone::Bad, words);
    }

    /// Adds the effect on amounts, if anything that decides them changes.
    fn amounts_if_changed(&mut self, live: &Live, before: &Template, after: &Template) {
        let (was, is) = (&before.algorithm, &after.algorithm);
        let differs = before.capacity != after.capacity || was.kind != is.kind;
        if !differs {
            return;
        }
        if was.kind != is.kind {
            self.kind(was.kind.as_str(), is.kind);
        }
        self.amounts(live, after);
    }

    fn kind(&mut self, was: &str, is: AlgorithmKind) {
        let words = format!("divided by {is} instead of {was}, as clients refresh");
        self.say(Tone::Partial, words);
    }

    /// Adds the effect on amounts.
    fn amounts(&mut self, live: &Live, after: &Template) {
        let capacity = after.capacity.get();
        match after.algorithm.kind {
            AlgorithmKind::NoAlgorithm => {
                let words = "everyone gets what it wants: the capacity is not looked at";
                self.say(Tone::Good, words.to_owned());
            }
            AlgorithmKind::Static => {
                let words = format!(
                    "each of {} gets up to {}: together they want {}",
                    clients(live.clients),
                    number(capacity),
                    number(live.wants)
                );
                self.say(Tone::Partial, words);
            }
            _ => self.shared(live, capacity),
        }
    }

    /// A total that is kept.
    fn shared(&mut self, live: &Live, capacity: f64) {
        let (wants, reserved) = (live.wants, live.reserved);
        let within = format!(
            "within a refresh interval of {}",
            span(live.refresh_interval)
        );
        let who = clients(live.clients);
        if reserved > capacity {
            let s = if live.clients == 1 { "s" } else { "" };
            let then = wants.min(capacity);
            if live.granted > then {
                let words = format!(
                    "{who} shrink{s} from {} to {} {within}",
                    number(live.granted),
                    number(then)
                );
                let tone = if wants > capacity {
                    Tone::Bad
                } else {
                    Tone::Partial
                };
                self.say(tone, words);
            }
            let words = format!(
                "{} beyond the new capacity stays reserved until they have refreshed, for {} at most",
                number(reserved - capacity),
                span(live.lease_length)
            );
            self.say(Tone::Partial, words);
        } else if wants <= capacity {
            let words = if live.granted < wants {
                format!(
                    "there will be enough for everyone: {who} can have all of {} {within}",
                    number(wants)
                )
            } else {
                format!("there is enough for everyone: {who} with {}", number(wants))
            };
            self.say(Tone::Good, words);
        } else {
            let words = format!(
                "{who} can have {} of the {} wanted ({} now)",
                number(capacity),
                number(wants),
                number(live.granted)
            );
            self.say(Tone::Partial, words);
        }
    }

    /// How leases are given.
    fn manner(&mut self, before: &Template, after: &Template) {
        let (was, is) = (&before.algorithm, &after.algorithm);
        self.spans(
            (was.lease_length, is.lease_length),
            (was.refresh_interval, is.refresh_interval),
        );
        if before.safe_capacity != after.safe_capacity {
            let words = format!(
                "the safe capacity is {} instead of {} with the next refresh",
                safe(after.safe_capacity),
                safe(before.safe_capacity)
            );
            self.say(Tone::Partial, words);
        }
        let (was_bounds, is_bounds) = (before.holder_bounds, after.holder_bounds);
        if was_bounds.wants_max != is_bounds.wants_max {
            let words = format!(
                "the most that one client can have is {} instead of {} with the next refresh",
                wants_max(is_bounds),
                wants_max(was_bounds)
            );
            self.say(Tone::Partial, words);
        }
        if was_bounds.subclients_max != is_bounds.subclients_max {
            let words = format!(
                "the most clients that one child server can stand for is {} instead of {} with the next \
                 refresh",
                subclients_max(is_bounds),
                subclients_max(was_bounds)
            );
            self.say(Tone::Partial, words);
        }
        let is_said = |it: &Algorithm| it.learning_mode_duration != it.lease_length;
        let differs = was.learning_mode_duration != is.learning_mode_duration;
        if differs && (is_said(was) || is_said(is)) {
            let words = format!(
                "learning mode lasts {} instead of {}, where it has begun, too",
                span(is.learning_mode_duration),
                span(was.learning_mode_duration)
            );
            self.say(Tone::Partial, words);
        }
        if was.min_shares != is.min_shares {
            let words = "what priorities are sure of changes with the next refresh".to_owned();
            self.say(Tone::Partial, words);
        }
        if was.shrink != is.shrink {
            let words = "when a shrunk grant frees capacity for others changes at once".to_owned();
            self.say(Tone::Partial, words);
        }
    }

    fn spans(&mut self, lease: (Duration, Duration), refresh: (Duration, Duration)) {
        let mut said = Vec::new();
        if lease.0 != lease.1 {
            said.push(format!(
                "last {} instead of {}",
                span(lease.1),
                span(lease.0)
            ));
        }
        if refresh.0 != refresh.1 {
            let (was, is) = (span(refresh.0), span(refresh.1));
            said.push(format!("are refreshed every {is} instead of {was}"));
        }
        if !said.is_empty() {
            let words = format!("leases {}, from the next refresh on", said.join(" and "));
            self.say(Tone::Partial, words);
        }
    }

    /// When only the server knows what is in force.
    fn manner_unknown(&mut self, live: &Live, after: &Template) {
        let is = &after.algorithm;
        let another_kind = live.algorithm != is.kind.as_str();
        if another_kind && !live.algorithm.is_empty() {
            self.kind(&live.algorithm, is.kind);
        }
        if another_kind || live.capacity != after.capacity.get() {
            self.amounts(live, after);
        }
        self.spans(
            (live.lease_length, is.lease_length),
            (live.refresh_interval, is.refresh_interval),
        );
    }
}

fn clients(count: u64) -> String {
    if count == 1 {
        "1 client".to_owned()
    } else {
        format!("{count} clients")
    }
}

#[cfg(test)]
#[path = "effect_tests.rs"]
mod tests;
