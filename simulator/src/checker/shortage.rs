//! Figures of one client over time: what it wanted and got.
//!
//! A client *gets* the smaller of its wants and its lease. The ideal, measured now and then, tells a
//! lack of capacity from an unfair share.

use doorward_engine::time::Time;

use crate::recording::ClientFigures;

/// Integrals of one client; the unit is seconds times the unit of the figure.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MissingOverTime {
    /// End of the time that the integrals cover.
    pub(super) since: Time,
    wanted: f64,
    got: f64,
    /// Sum of the ideal shares at all looks.
    pub(super) ideal: f64,
}

impl MissingOverTime {
    /// Adds the time until now, with these wants and this lease.
    pub(super) fn advance(&mut self, wants: f64, lease: f64, now: Time) {
        let time = now.since(self.since).as_secs_f64();
        self.since = self.since.max(now);
        self.wanted += time * wants;
        self.got += time * wants.min(lease);
    }

    /// Returns the figures over that many seconds and looks. The caller fills in the names.
    pub(super) fn figures(&self, seconds: f64, looks: u32) -> ClientFigures {
        let seconds = seconds.max(f64::MIN_POSITIVE);
        ClientFigures {
            wanted: self.wanted / seconds,
            got: self.got / seconds,
            ideal: self.ideal / f64::from(looks.max(1)),
            ..ClientFigures::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_at_most_what_it_wants() {
        let at = Time::from_secs;
        let mut shortage = crate::checker::with(|it: &mut MissingOverTime| it.since = at(10));
        // Time before the run has settled does not count.
        shortage.advance(10.0, 0.0, at(10));
        assert_eq!(shortage.figures(1.0, 0), ClientFigures::default());
        shortage.advance(10.0, 5.0, at(12));
        shortage.ideal += 5.0;
        // A surplus is not used.
        shortage.advance(10.0, 9.95, at(14));
        shortage.advance(4.0, 5.0, at(18));
        shortage.ideal += 4.0;
        shortage.advance(0.0, 5.0, at(20));
        let figures = shortage.figures(10.0, 2);
        assert!((figures.wanted - 5.6).abs() < 1e-12);
        assert!((figures.got - 4.59).abs() < 1e-12);
        assert_eq!(figures.ideal, 4.5);
    }
}
