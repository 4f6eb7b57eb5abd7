//! Figures of one client over time: what it wanted and got, and how long it was short.
//!
//! A client *gets* the smaller of its wants and its lease. It is *short* while it gets less than 99
//! % of its wants. The ideal, measured now and then, tells a lack of capacity from an unfair share.

use doorward_engine::time::Time;

use crate::recording::ClientFigures;

/// Smallest shortage that counts, as a part of the wants.
const NEGLIGIBLE: f64 = 0.01;

/// Returns whether a client with these wants has too small a lease.
pub(super) fn is_short(wants: f64, lease: f64) -> bool {
    lease < wants * (1.0 - NEGLIGIBLE)
}

/// Integrals of one client; the unit is seconds times the unit of the figure.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MissingOverTime {
    /// End of the time that the integrals cover.
    since: Time,
    wanted: f64,
    got: f64,
    wanting: f64,
    short: f64,
    /// Sum over all looks.
    ideal: f64,
}

impl MissingOverTime {
    pub(super) fn new(settled_after: Time) -> Self {
        Self {
            since: settled_after,
            ..Self::default()
        }
    }

    /// Adds the time until now, with these wants and this lease.
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

    /// Adds the ideal share at a look.
    pub(super) fn note_ideal(&mut self, ideal: f64) {
        self.ideal += ideal;
    }

    /// Returns the figures over that many seconds and looks. The caller fills in the names.
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
        // Time before the run has settled does not count.
        shortage.advance(10.0, 0.0, at(10));
        assert_eq!(shortage.figures(1.0, 0), ClientFigures::default());
        shortage.advance(10.0, 5.0, at(12));
        shortage.note_ideal(5.0);
        // Nearly all is enough; a surplus is not used; a client that wants nothing is not short.
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
