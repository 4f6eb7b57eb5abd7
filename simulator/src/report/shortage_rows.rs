//! Who goes short, and of how much: the clients to whom most is missing, worst first, as they stand
//! in a summary, a page, a file and a comparison.

use std::collections::HashMap;

use crate::recording::{ClientFigures, ResourceRecording};
use crate::report::text::printable;
use doorward_pages::numbers::{measured, percent};

/// Of what a client wants, what may be missing before it is listed.
const NEGLIGIBLE: f64 = 0.005;

/// A client as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ShortageRow<'a> {
    pub(super) client: &'a str,
    pub(super) node: &'a str,
    pub(super) wanted: String,
    pub(super) got: String,
    pub(super) missing: String,
    /// Of what it wanted, what it got, and what the ideal would have given it.
    pub(super) met: String,
    pub(super) ideal: String,
    /// Of the time.
    pub(super) short: String,
    /// The two parts as the style sheet has them, in percent.
    pub(super) met_width: String,
    pub(super) ideal_at: String,
}

/// Clients that got less than they wanted, the one to whom most is missing first.
pub(super) fn rows(resource: &ResourceRecording) -> Vec<ShortageRow<'_>> {
    let short = resource.client_figures.iter().filter(|it| is_short(it));
    short.map(ShortageRow::of).collect()
}

fn is_short(figures: &ClientFigures) -> bool {
    missing(figures) > figures.wanted * NEGLIGIBLE
}

fn missing(figures: &ClientFigures) -> f64 {
    figures.wanted - figures.got
}

/// Of what it wanted. Of nothing it got all.
fn met(figures: &ClientFigures) -> f64 {
    part(figures.got, figures.wanted)
}

fn part(of: f64, whole: f64) -> f64 {
    if whole > 0.0 { of / whole } else { 1.0 }
}

impl<'a> ShortageRow<'a> {
    fn of(figures: &'a ClientFigures) -> Self {
        let ideal = part(figures.ideal, figures.wanted);
        let width = |part: f64| format!("{:.1}", part.clamp(0.0, 1.0) * 100.0);
        Self {
            client: &figures.client,
            node: &figures.node,
            wanted: measured(figures.wanted),
            got: measured(figures.got),
            missing: measured(missing(figures)),
            met: percent(met(figures)),
            ideal: percent(ideal),
            short: percent(figures.short),
            met_width: width(met(figures)),
            ideal_at: width(ideal),
        }
    }
}

/// How much of what it wants a client gets in one run and in another.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shift {
    pub(super) client: String,
    /// In A.
    pub(super) wanted: String,
    pub(super) a: f64,
    pub(super) b: f64,
}

/// Clients to whom it makes a difference, the one with the largest, in amounts, first.
pub(super) fn shifts(a: &ResourceRecording, b: &ResourceRecording) -> Vec<Shift> {
    let others: HashMap<&str, &ClientFigures> = b
        .client_figures
        .iter()
        .map(|figures| (figures.client.as_str(), figures))
        .collect();
    let both = a.client_figures.iter().filter_map(|figures| {
        let other = *others.get(figures.client.as_str())?;
        let differs = (met(figures) - met(other)).abs() > NEGLIGIBLE;
        differs.then_some((figures, other))
    });
    let mut both: Vec<_> = both.collect();
    let by = |(a, b): &(&ClientFigures, &ClientFigures)| (missing(a) - missing(b)).abs();
    both.sort_by(|one, other| by(other).total_cmp(&by(one)));
    let shift = |(a, b): (&ClientFigures, &ClientFigures)| Shift {
        client: printable(&a.client),
        wanted: measured(a.wanted),
        a: met(a),
        b: met(b),
    };
    both.into_iter().map(shift).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::plausible;

    #[test]
    fn whoever_lacks_nothing_is_left_out() {
        let mut resource = plausible::small().resources.remove(0);
        let shown: Vec<_> = rows(&resource).iter().map(|row| row.client).collect();
        assert_eq!(shown, ["b'\"", "a"]);
        let row = &rows(&resource)[0];
        assert_eq!((row.missing.as_str(), row.met.as_str()), ("2.45", "65 %"));
        resource.client_figures[0].got = 6.99;
        assert_eq!(rows(&resource).len(), 1);
    }

    #[test]
    fn shifts_are_of_clients_that_both_have_and_the_largest_is_first() {
        let a = plausible::small().resources.remove(0);
        let mut b = a.clone();
        assert_eq!(shifts(&a, &b), []);
        b.client_figures[0].got -= 1.0;
        b.client_figures[1].got -= 2.0;
        let clients = |shifts: Vec<Shift>| -> Vec<String> {
            shifts.into_iter().map(|shift| shift.client).collect()
        };
        assert_eq!(clients(shifts(&a, &b)), ["a", "b'\""]);
        b.client_figures.remove(1);
        assert_eq!(clients(shifts(&a, &b)), ["b'\""]);
    }
}
