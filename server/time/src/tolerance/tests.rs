//! Durations on two clocks that differ.

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn of(part: f64) -> Tolerance {
    Tolerance::of_part(part).expect("within the limits")
}

#[test]
fn by_the_least_nothing_changes() {
    for span in [
        Duration::ZERO,
        Duration::from_nanos(1),
        MINUTE,
        Duration::MAX,
    ] {
        assert_eq!(Tolerance::LEAST.promise(span), span);
        assert_eq!(Tolerance::LEAST.report(span), span);
    }
    assert_eq!(of(0.1).report(Duration::ZERO), Duration::ZERO);
    assert_eq!(of(0.001), Tolerance::LEAST);
    assert_eq!(Tolerance::default(), Tolerance::LEAST);
    assert_eq!(Tolerance::MOST.report(Duration::MAX), Duration::MAX);
}

#[test]
fn a_lease_that_is_heard_counts_less_by_the_whole_tolerance() {
    for part in [0.001, 0.01, 0.1, 0.25] {
        let counted = at_least(of(part).promise(MINUTE)).as_secs_f64();
        assert!(
            (counted - 60.0 * (1.0 - part)).abs() < 1e-6,
            "{part} {counted}"
        );
        let counted = at_most(of(part).report(MINUTE)).as_secs_f64();
        assert!(
            (counted - 60.0 / (1.0 - part)).abs() < 1e-6,
            "{part} {counted}"
        );
    }
}

/// Clocks as slow and as fast as the tolerances allow, and leases that pass between them. Times without a unit are true
/// times. `of_x(span)` is the true time that passes while `span` passes on the clock of x.
#[test]
fn no_lease_is_used_for_longer_than_it_is_reserved() {
    const HALF: f64 = 0.0005;
    for (granter, holder) in [(0.001, 0.001), (0.1, 0.001), (0.001, 0.1), (0.25, 0.25)] {
        let (granter, holder) = (of(granter), of(holder));
        for (granters_sign, holders_sign) in [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)] {
            let speed = |tolerance: Tolerance, sign: f64| 1.0 + sign * (tolerance.part() - HALF);
            let of_granter = |span: Duration| span.as_secs_f64() / speed(granter, granters_sign);
            let of_holder = |span: Duration| span.as_secs_f64() / speed(holder, holders_sign);
            let sent = granter.promise(MINUTE);
            let used = at_least(holder.promise(sent));
            let what = format!("{granter:?} {granters_sign} {holder:?} {holders_sign}");
            assert!(of_holder(used) <= of_granter(MINUTE), "{what}: a promise");
            let sent = holder.report(MINUTE);
            let counted = at_most(granter.report(sent));
            assert!(of_granter(counted) >= of_holder(MINUTE), "{what}: a report");
        }
    }
}

#[test]
fn a_tolerance_is_read_as_it_is_written() {
    for text in ["0.001", "0.1", "0.25", "0.083"] {
        assert_eq!(
            text.parse::<Tolerance>()
                .map(|it| it.to_string())
                .as_deref(),
            Ok(text)
        );
    }
    for text in ["", "a tenth", "10%", "1", "0.0001", "NaN"] {
        text.parse::<Tolerance>().expect_err(text);
    }
}

#[test]
fn a_tolerance_is_within_limits() {
    for part in [0.0, 0.0009, 0.26, 1.0, -0.1, f64::NAN, f64::INFINITY] {
        let error = Tolerance::of_part(part).expect_err("out of them");
        assert!(error.to_string().contains("from 0.001 to 0.25"), "{error}");
    }
    for (part, clamped) in [(0.0, 0.001), (0.1, 0.1), (7.0, 0.25), (f64::NAN, 0.001)] {
        assert_eq!(Tolerance::clamped(part), of(clamped), "{part}");
    }
    assert!(Tolerance::LEAST < Tolerance::STEERED && Tolerance::STEERED < Tolerance::MOST);
}
