//! For how long leases may be out by templates that are not in force any more.
//!
//! A fresh master learns for as long as leases last by its own templates. If leases were longer
//! before, one of them may still be out when that is over, and what its holder uses would be given to
//! somebody else as well. So a master of the root writes beside its term how long leases last
//! ([`LeaseLengths`]), and who succeeds it learns for that long. Three things must hold:
//!
//! - What a term says is never less than what is out. Templates that give other lengths count only
//!   after etcd has confirmed a term that says so ([`Lengths::told`] with them, then
//!   [`Lengths::change`]).
//! - `older_ms` counts from when it is written. The master counts down what is left on its own clock;
//!   a successor counts it from when the node became vacant, which is later than it was written.
//! - Nothing is lost over a chain of short masterships: what a master has inherited is part of what it
//!   says itself, until its own clock has seen it end.

use std::time::Duration;

use doorward_clock::Instant;
use doorward_engine::template::Templates;
use doorward_engine::time;
use doorward_engine::tolerance::Tolerance;
use doorward_etcd::directory::LeaseLengths;

/// What a predecessor said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// There is no term of anybody.
    NoTerm,
    /// Its term says nothing of leases: a server of an older version wrote it, or it cannot be read.
    Nothing,
    /// So long.
    Lengths(&'a LeaseLengths),
}

/// The lease lengths that a candidate of the root goes by.
#[derive(Clone, Debug)]
pub struct Lengths {
    templates: Templates,
    digest: String,
    /// Until when leases may last that were granted by former templates which gave longer ones.
    older_until: Option<Instant>,
    /// By how much our clock may be wrong. How long somebody else's leases may last is a report, which is
    /// made longer (`doorward_engine::tolerance`).
    clock_tolerance: Tolerance,
}

impl Lengths {
    /// By templates that are in force, on a clock that may be wrong by so much.
    pub fn new(templates: Templates, clock_tolerance: Tolerance) -> Self {
        Self {
            clock_tolerance,
            digest: digest(&templates),
            templates,
            older_until: None,
        }
    }

    /// The templates in force.
    pub fn in_force(&self) -> &Templates {
        &self.templates
    }

    /// What a term says that is written now. `next` are templates that will be in force as soon as it
    /// is confirmed: until then leases are granted by those that are.
    pub fn told(&self, next: Option<&Templates>, now: Instant) -> LeaseLengths {
        let left = self
            .older_until
            .map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        let (digest, templates, older) = match next {
            Some(next) => (digest(next), next, left.max(self.templates.outlasts(next))),
            None => (self.digest.clone(), &self.templates, left),
        };
        LeaseLengths {
            templates: digest,
            longest_ms: millis(templates.longest_lease()),
            older_ms: millis(self.clock_tolerance.report(older)),
        }
    }

    /// `next` are in force. Until `granted_until` leases may have been granted by those before.
    /// Returns how long the longest of these is for which `next` give a shorter one.
    pub fn change(&mut self, next: Templates, granted_until: Instant) -> Duration {
        let outlasts = self.templates.outlasts(&next);
        self.digest = digest(&next);
        self.templates = next;
        if !outlasts.is_zero() {
            self.note_older(granted_until, outlasts);
        }
        outlasts
    }

    /// How long the longest lease is that a predecessor may have left, by templates other than these.
    /// `unsaid` is that length if it said nothing.
    pub fn longer_leases(&self, said: Said<'_>, unsaid: Duration) -> Duration {
        match said {
            Said::NoTerm => Duration::ZERO,
            Said::Nothing => unsaid,
            Said::Lengths(said) => {
                let older = Duration::from_millis(said.older_ms);
                if said.templates == self.digest {
                    older
                } else {
                    older.max(Duration::from_millis(said.longest_ms))
                }
            }
        }
    }

    /// A mastership was won in a node that is vacant since then, and in which leases of that length
    /// may be out.
    pub fn inherit(&mut self, vacant_since: Instant, longer_leases: Duration) {
        if !longer_leases.is_zero() {
            self.note_older(vacant_since, longer_leases);
        }
    }

    /// How long after a node became vacant leases may last that this server knows of.
    pub fn older_after(&self, vacant_since: Instant) -> Duration {
        self.older_until.map_or(Duration::ZERO, |until| {
            until.saturating_duration_since(vacant_since)
        })
    }

    /// Leases of that length were granted until then. Others count them on clocks of their own.
    fn note_older(&mut self, granted_until: Instant, length: Duration) {
        let lasts = self.clock_tolerance.report(time::at_most(length));
        let until = granted_until + lasts;
        self.older_until = Some(self.older_until.map_or(until, |older| older.max(until)));
    }
}

/// Which lease lengths templates give.
fn digest(templates: &Templates) -> String {
    format!("{:016x}", templates.lengths_digest())
}

/// Never less than it is.
fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use doorward_engine::template::{AlgorithmKind, TemplateSpec};

    use super::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Templates with leases of so many seconds.
    fn templates(seconds: u64) -> Templates {
        Templates::parse(&[TemplateSpec {
            identifier_glob: Some("*".to_owned()),
            capacity: Some(100.0),
            kind: Some(AlgorithmKind::FairShare),
            lease_length: Some(secs(seconds)),
            refresh_interval: Some(Duration::from_millis(500)),
            ..TemplateSpec::default()
        }])
        .unwrap()
    }

    fn lengths(templates: &Templates) -> Lengths {
        Lengths::new(templates.clone(), Tolerance::LEAST)
    }

    /// What is said, in seconds: whether by these templates, how long leases are, and older ones.
    #[track_caller]
    fn check(told: &LeaseLengths, by: &Templates, longest: u64, older_ms: u64) {
        let expected = LeaseLengths {
            templates: digest(by),
            longest_ms: longest * 1_000,
            older_ms,
        };
        assert_eq!(*told, expected);
    }

    #[tokio::test]
    async fn longer_leases_are_told_before_shorter_ones_count_until_they_are_over() {
        let now = Instant::now();
        let (long, short) = (templates(40), templates(5));
        let mut lengths = lengths(&long);
        check(&lengths.told(None, now), &long, 40, 0);
        // As long as it is not in force, leases are granted that last for the whole of it.
        for later in [0, 30] {
            let told = lengths.told(Some(&short), now + secs(later));
            check(&told, &short, 5, 40_000);
        }
        assert_eq!(lengths.change(short.clone(), now + secs(30)), secs(40));
        let until = now + secs(30) + time::at_most(secs(40));
        check(&lengths.told(None, until - secs(10)), &short, 5, 10_000);
        check(&lengths.told(None, until), &short, 5, 0);
        // Longer ones are told in time as well, and change nothing of what was.
        let told = lengths.told(Some(&long), until - secs(10));
        check(&told, &long, 40, 10_000);
        assert_eq!(lengths.change(long.clone(), now + secs(40)), secs(0));
        check(&lengths.told(None, until - secs(10)), &long, 40, 10_000);
    }

    #[tokio::test]
    async fn of_two_changes_the_one_that_leaves_the_longer_leases_counts() {
        let now = Instant::now();
        for (first, second, third) in [(40, 20, 5), (40, 5, 4), (10, 40, 5)] {
            let mut lengths = lengths(&templates(first));
            lengths.change(templates(second), now);
            lengths.change(templates(third), now + secs(10));
            let until = [
                (now + time::at_most(secs(first))),
                (now + secs(10) + time::at_most(secs(second))),
            ];
            let shorter = [second < first, third < second];
            let until = until.into_iter().zip(shorter).filter(|(_, is)| *is);
            let until = until.map(|(until, _)| until).max().unwrap();
            let told = lengths.told(None, until - secs(1));
            check(&told, &templates(third), third, 1_000);
        }
    }

    #[test]
    fn a_successor_learns_for_what_its_predecessor_said() {
        let lengths = lengths(&templates(5));
        let said = |by: u64, older: u64| LeaseLengths {
            templates: digest(&templates(by)),
            longest_ms: by * 1_000,
            older_ms: older * 1_000,
        };
        for (what, said, longer) in [
            ("nobody was there", None, 0),
            ("by the same templates", Some(said(5, 0)), 0),
            ("with older leases out", Some(said(5, 40)), 40),
            ("by other templates", Some(said(20, 0)), 20),
            ("by others, with older leases", Some(said(20, 40)), 40),
            ("by others, with shorter ones", Some(said(20, 10)), 20),
        ] {
            let said = said.as_ref().map_or(Said::NoTerm, Said::Lengths);
            let found = lengths.longer_leases(said, secs(60));
            assert_eq!(found, secs(longer), "{what}");
        }
        let found = lengths.longer_leases(Said::Nothing, secs(60));
        assert_eq!(found, secs(60), "it said nothing");
    }

    #[tokio::test]
    async fn a_chain_of_short_masterships_loses_nothing_and_adds_nothing() {
        let now = Instant::now();
        let mut first = lengths(&templates(40));
        first.change(templates(5), now);
        let until = now + time::at_most(secs(40));
        let mut told = first.told(None, now + secs(1));
        for vacant_since in [3, 6, 9].map(|seconds| now + secs(seconds)) {
            let mut next = lengths(&templates(5));
            let longer = next.longer_leases(Said::Lengths(&told), Duration::ZERO);
            assert!(vacant_since + longer >= until);
            next.inherit(vacant_since, longer);
            told = next.told(None, vacant_since + secs(1));
        }
        // A successor counts from later than it was written: no more is added than that.
        let left = Duration::from_millis(told.older_ms);
        assert!(now + secs(10) + left >= until);
        assert!(now + secs(10) + left <= until + secs(3 * 3 + 1));
    }

    #[tokio::test]
    async fn a_clock_that_may_be_wrong_counts_older_leases_for_longer() {
        let now = Instant::now();
        let mut lengths = Lengths::new(templates(40), Tolerance::STEERED);
        lengths.change(templates(5), now);
        // By a clock that is a tenth too fast, 36 s have passed when it shows 40 s.
        let told = lengths.told(None, now + secs(40));
        assert!(told.older_ms > 4_000, "{told:?}");
    }

    #[tokio::test]
    async fn spans_are_never_told_shorter_than_they_are() {
        let now = Instant::now();
        let mut lengths = lengths(&templates(5));
        lengths.inherit(now, Duration::from_nanos(1_000_001));
        assert_eq!(lengths.told(None, now).older_ms, 2);
        let after = lengths.older_after(now);
        assert!(after > Duration::from_nanos(1_000_001));
        assert_eq!(lengths.older_after(now + secs(1)), Duration::ZERO);
    }

    #[test]
    fn by_a_clock_that_may_be_wrong_leases_of_others_last_longer() {
        let mut lengths = Lengths::new(templates(5), Tolerance::STEERED);
        let vacant_since = Instant::now();
        lengths.inherit(vacant_since, secs(40));
        // 40 s by a good clock are 44 s by one that is a tenth fast, and may be less by one that is slow.
        assert!(lengths.older_after(vacant_since) > secs(44));
        let told = lengths.told(None, vacant_since + secs(10));
        assert!(told.older_ms > 37_000, "{told:?}");
    }
}
