//! How one client did: what it wanted and got, over time, and how long it was short.
//!
//! A client *gets* the smaller of what it wants and what its lease lets it use; it is *short* while
//! that is less than it wants by more than a hundredth. Whether nobody could have had more, or
//! somebody else had it, is judged by what the ideal would have given, which is looked at now and then.

use doorward_engine::time::Time;

use crate::recording::ClientFigures;

/// What is too little to count, as a part of what is wanted.
const NEGLIGIBLE: f64 = 0.01;

/// Whether somebody who wants this has too little.
pub(super) fn is_short(wants: f64, lease: f64) -> bool {
    lease < wants * (1.0 - NEGLIGIBLE)
}

/// The integrals of one client, in seconds times what is integrated.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MissingOverTime {
    /// Up to when they are.
    since: Time,
    wanted: f64,
    got: f64,
    wanting: f64,
    short: f64,
    /// The sum over all looks.
    ideal: f64,
}

impl MissingOverTime {
    pub(super) fn new(settled_after: Time) -> Self {
        Self {
            since: settled_after,
            ..Self::default()
        }
    }

    /// It wanted and had this until now.
    pub(super) fn advance(&mut self, wants: f64, lease: f64, now: Time) {
        if now <= self.since {
            return;
        }
        let time = now.since(self.since).as_secs_f64();
        self.since = now;
        if wants > 0.0 {
            self.wanted += time * wants;
            self.got += time * wants.min(lease);
            self.wanting += time;
            if is_short(wants, lease) {
                self.short += time;
            }
        }
    }

    /// The ideal gives it so much now.
    pub(super) fn note_ideal(&mut self, ideal: f64) {
        self.ideal += ideal;
    }

    /// How it did in that many seconds and looks; its names are left to whoever knows them.
    pub(super) fn figures(&self, seconds: f64, looks: u32) -> ClientFigures {
        let seconds = seconds.max(f64::MIN_POSITIVE);
        ClientFigures {
            wanted: self.wanted / seconds,
            got: self.got / seconds,
            ideal: self.ideal / f64::from(looks.max(1)),
            short: if self.wanting > 0.0 {
                self.short / self.wanting
            } else {
                0.0
            },
            ..ClientFigures::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_short_while_it_has_less_than_it_wants() {
        let at = Time::from_secs;
        let mut shortage = MissingOverTime::new(at(10));
        // Before all is settled nothing counts.
        shortage.advance(10.0, 0.0, at(10));
        assert_eq!(shortage.figures(1.0, 0), ClientFigures::default());
        shortage.advance(10.0, 5.0, at(12));
        shortage.note_ideal(5.0);
        // Nearly all is enough; more than is wanted is not got; who wants nothing is not short.
        shortage.advance(10.0, 9.95, at(14));
        shortage.advance(4.0, 5.0, at(18));
        shortage.note_ideal(4.0);
        shortage.advance(0.0, 5.0, at(20));
        let figures = shortage.figures(10.0, 2);
        assert!((figures.wanted - 5.6).abs() < 1e-12);
        assert!((figures.got - 4.59).abs() < 1e-12);
        assert_eq!((figures.ideal, figures.short), (4.5, 0.25));
    }
}
