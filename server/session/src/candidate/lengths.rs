//! For how long leases may be out by templates that are not in force any more.
//!
//! A fresh master learns for as long as leases last by its own templates. If leases were longer before, one of
//! them may still be out when that is over, and what its holder uses would be given to somebody else as well.
//! So a master of the root writes beside its term how long leases last ([`LeaseLengths`]), and who succeeds it
//! learns for that long. Three things must hold:
//!
//! - What a term says is never less than what is out. Templates that give other lengths count only after etcd
//!   has confirmed a term that says so ([`Lengths::told`] with them, then [`Lengths::change`]).
//! - What it says of older leases counts from when it is written. The master counts down what is left on its
//!   own clock; a successor counts it from when the node became vacant, which is later than it was written.
//! - Nothing is lost over a chain of short masterships: what a master has inherited is part of what it says
//!   itself, until its own clock has seen it end.

use std::time::Duration;

use smol_str::SmolStr;

use super::clock_error::{ClockError, at_most};
use super::store::LeaseLengths;
use super::term::whole_millis;
use super::{InForce, NextTemplates};
use crate::planted::{self, Bug};
use crate::time::Time;

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
    /// Which those in force are.
    digest: SmolStr,
    longest: Duration,
    /// Until when leases may last that were granted by former templates which gave longer ones.
    older_until: Option<Time>,
    /// By how much our clock may be wrong. How long somebody else's leases may last is a report, which is made
    /// longer.
    clock_error: ClockError,
}

impl Lengths {
    /// By templates that are in force, on a clock that may be wrong by so much.
    pub fn new(in_force: &InForce, clock_error: ClockError) -> Self {
        Self {
            digest: in_force.digest.clone(),
            longest: in_force.longest,
            older_until: None,
            clock_error,
        }
    }

    /// The longest lease by the templates in force.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// What a term says that is written now. `next` are templates that will be in force as soon as it is
    /// confirmed: until then leases are granted by those that are.
    pub fn told(&self, next: Option<&NextTemplates>, now: Time) -> LeaseLengths {
        let left = self
            .older_until
            .map_or(Duration::ZERO, |until| until.since(now));
        let (templates, longest, older) = match next {
            Some(next) => (&next.digest, next.longest, left.max(next.outlasts)),
            None => (&self.digest, self.longest, left),
        };
        let older = match older {
            _ if planted::is(Bug::OlderLeasesForgotten) => Duration::ZERO,
            older => older,
        };
        LeaseLengths {
            templates: templates.clone(),
            longest: whole_millis(longest),
            older: whole_millis(self.clock_error.report(older)),
        }
    }

    /// `next` are in force. Until `granted_until` leases may have been granted by those before.
    pub fn change(&mut self, next: NextTemplates, granted_until: Time) {
        self.digest = next.digest;
        self.longest = next.longest;
        if !next.outlasts.is_zero() {
            self.note_older(granted_until, next.outlasts);
        }
    }

    /// How long the longest lease is that a predecessor may have left, by templates other than these. `unsaid`
    /// is that length if it said nothing.
    pub fn longer_leases(&self, said: Said<'_>, unsaid: Duration) -> Duration {
        match said {
            Said::NoTerm => Duration::ZERO,
            Said::Nothing => unsaid,
            Said::Lengths(said) if said.templates == self.digest => said.older,
            Said::Lengths(said) => said.older.max(said.longest),
        }
    }

    /// A mastership was won in a node that is vacant since then, and in which leases of that length may be out.
    pub fn inherit(&mut self, vacant_since: Time, longer_leases: Duration) {
        if !longer_leases.is_zero() {
            self.note_older(vacant_since, longer_leases);
        }
    }

    /// How long after a node became vacant leases may last that this server knows of.
    pub fn older_after(&self, vacant_since: Time) -> Duration {
        self.older_until
            .map_or(Duration::ZERO, |until| until.since(vacant_since))
    }

    /// Leases of that length were granted until then. Others count them on clocks of their own.
    fn note_older(&mut self, granted_until: Time, length: Duration) {
        let lasts = self.clock_error.report(at_most(length));
        let until = granted_until + lasts;
        self.older_until = Some(self.older_until.map_or(until, |older| older.max(until)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn at(seconds: u64) -> Time {
        Time::after_origin(secs(seconds))
    }

    fn digest(seconds: u64) -> SmolStr {
        SmolStr::new(format!("leases of {seconds} s"))
    }

    /// By templates with leases of so many seconds, on a clock that may be wrong by so much.
    fn lengths_by(seconds: u64, clock_error: ClockError) -> Lengths {
        let in_force = InForce {
            digest: digest(seconds),
            longest: secs(seconds),
            has_history: false,
        };
        Lengths::new(&in_force, clock_error)
    }

    fn lengths(seconds: u64) -> Lengths {
        lengths_by(seconds, ClockError::LEAST)
    }

    /// Templates with leases of so many seconds, to come after those of an election.
    fn next(lengths: &Lengths, seconds: u64) -> NextTemplates {
        let shortened = lengths.longest > secs(seconds);
        let outlasts = if shortened {
            lengths.longest
        } else {
            Duration::ZERO
        };
        NextTemplates {
            digest: digest(seconds),
            longest: secs(seconds),
            outlasts,
            learning_outlasts: outlasts,
        }
    }

    fn change(lengths: &mut Lengths, seconds: u64, granted_until: Time) {
        lengths.change(next(lengths, seconds), granted_until);
    }

    /// What is said, in seconds: by which templates, how long leases are, and older ones.
    #[track_caller]
    fn check(told: &LeaseLengths, longest: u64, older_ms: u64) {
        let expected = LeaseLengths {
            templates: digest(longest),
            longest: secs(longest),
            older: Duration::from_millis(older_ms),
        };
        assert_eq!(*told, expected);
    }

    #[test]
    fn longer_leases_are_told_before_shorter_ones_count_until_they_are_over() {
        let mut lengths = lengths(40);
        check(&lengths.told(None, at(0)), 40, 0);
        // As long as it is not in force, leases are granted that last for the whole of it.
        for later in [0, 30] {
            let told = lengths.told(Some(&next(&lengths, 5)), at(later));
            check(&told, 5, 40_000);
        }
        change(&mut lengths, 5, at(30));
        let until = at(30) + at_most(secs(40));
        let before = |seconds| Time::after_origin(until.since(at(seconds)));
        check(&lengths.told(None, before(10)), 5, 10_000);
        check(&lengths.told(None, until), 5, 0);
        // Longer ones are told in time as well, and change nothing of what was.
        let told = lengths.told(Some(&next(&lengths, 40)), before(10));
        check(&told, 40, 10_000);
        change(&mut lengths, 40, at(40));
        check(&lengths.told(None, before(10)), 40, 10_000);
    }

    #[test]
    fn of_two_changes_the_one_that_leaves_the_longer_leases_counts() {
        for (first, second, third) in [(40, 20, 5), (40, 5, 4), (10, 40, 5)] {
            let mut lengths = lengths(first);
            change(&mut lengths, second, at(0));
            change(&mut lengths, third, at(10));
            let until = [at(0) + at_most(secs(first)), at(10) + at_most(secs(second))];
            let shorter = [second < first, third < second];
            let until = until.into_iter().zip(shorter).filter(|(_, is)| *is);
            let until = until.map(|(until, _)| until).max().unwrap();
            let told = lengths.told(None, Time::after_origin(until.since(at(1))));
            check(&told, third, 1_000);
        }
    }

    #[test]
    fn a_successor_learns_for_what_its_predecessor_said() {
        let lengths = lengths(5);
        let said = |by: u64, older: u64| LeaseLengths {
            templates: digest(by),
            longest: secs(by),
            older: secs(older),
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

    #[test]
    fn a_chain_of_short_masterships_loses_nothing_and_adds_nothing() {
        let mut first = lengths(40);
        change(&mut first, 5, at(0));
        let until = at(0) + at_most(secs(40));
        let mut told = first.told(None, at(1));
        for vacant_since in [3, 6, 9].map(at) {
            let mut next = lengths(5);
            let longer = next.longer_leases(Said::Lengths(&told), Duration::ZERO);
            assert!(vacant_since + longer >= until);
            next.inherit(vacant_since, longer);
            told = next.told(None, vacant_since + secs(1));
        }
        // A successor counts from later than it was written: no more is added than that.
        assert!(at(10) + told.older >= until);
        assert!(at(10) + told.older <= until + secs(3 * 3 + 1));
    }

    #[test]
    fn a_clock_that_may_be_wrong_counts_older_leases_for_longer() {
        let mut lengths = lengths_by(40, ClockError::of_part(0.1));
        change(&mut lengths, 5, at(0));
        // By a clock that is a tenth too fast, 36 s have passed when it shows 40 s.
        let told = lengths.told(None, at(40));
        assert!(told.older > secs(4), "{told:?}");
    }

    #[test]
    fn spans_are_never_told_shorter_than_they_are() {
        let mut lengths = lengths(5);
        lengths.inherit(at(0), Duration::from_nanos(1_000_001));
        let told = lengths.told(None, at(0));
        assert_eq!(told.older, Duration::from_millis(2));
        let after = lengths.older_after(at(0));
        assert!(after > Duration::from_nanos(1_000_001));
        assert_eq!(lengths.older_after(at(1)), Duration::ZERO);
    }

    #[test]
    fn by_a_clock_that_may_be_wrong_leases_of_others_last_longer() {
        let mut lengths = lengths_by(5, ClockError::of_part(0.1));
        lengths.inherit(at(100), secs(40));
        // 40 s by a good clock are 44 s by one that is a tenth fast, and may be less by one that is slow.
        assert!(lengths.older_after(at(100)) > secs(44));
        let told = lengths.told(None, at(110));
        assert!(told.older > secs(37), "{told:?}");
    }
}
