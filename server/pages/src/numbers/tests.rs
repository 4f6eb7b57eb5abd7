//! Tables of numbers, sizes and spans, and how each is shown.

use super::*;

#[test]
fn amounts_are_short_and_exact_enough() {
    for (value, shown, as_typed) in [
        (0.0, "0", "0"),
        (-0.0, "0", "0"),
        (1.0, "1", "1"),
        (100.0, "100", "100"),
        (0.1 + 0.2, "0.3", "0.3"),
        (33.333_333_333, "33.3333", "33.3333"),
        (1234.5, "1,234.5", "1234.5"),
        (1_234_567.89, "1,234,568", "1234568"),
        (999_999.96, "1,000,000", "1000000"),
        (1e15, "1.000e15", "1000000000000000"),
        (0.000_012_34, "0.000012", "0.000012"),
        (1e-9, "1.000e-9", "0.000000001"),
        (-1500.25, "-1,500.25", "-1500.25"),
        (f64::NAN, "–", "NaN"),
        (f64::INFINITY, "–", "inf"),
    ] {
        assert_eq!(amount(value), shown, "{value:?}");
        assert_eq!(typed(value), as_typed, "{value:?}");
    }
}

#[test]
fn what_was_measured_is_shown_in_four_digits() {
    for (value, expected) in [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (0.1 + 0.2, "0.3"),
        (33.333_333, "33.33"),
        (1234.5, "1,234"),
        (1_234_567.89, "1,234,568"),
        (-150.25, "-150.2"),
        (0.000_01, "1.00e-5"),
        (1e15, "1.00e15"),
        (f64::NAN, "–"),
        (f64::INFINITY, "–"),
    ] {
        assert_eq!(measured(value), expected, "{value:?}");
    }
}

#[test]
fn parts_never_round_to_nothing_or_to_all() {
    for (part, expected) in [
        (0.0, "0 %"),
        (0.5, "50 %"),
        (1.0, "100 %"),
        (0.9995, "99.95 %"),
        (0.999_99, "99.999 %"),
        (0.9713, "97.1 %"),
        (1.0001, "100.01 %"),
        (1.000_002, "100.0002 %"),
        (1.25, "125 %"),
        (0.0123, "1.23 %"),
        (0.000_02, "< 0.01 %"),
        (-0.021, "-2.10 %"),
        (f64::NAN, "–"),
    ] {
        assert_eq!(percent(part), expected, "{part:?}");
    }
}

#[test]
fn spans_show_their_two_largest_units() {
    for (value, expected) in [
        (0.0, "0 s"),
        (0.000_01, "< 1 ms"),
        (0.04, "40 ms"),
        (0.9999, "1 s"),
        (2.54, "2.5 s"),
        (59.99, "1 min"),
        (200.0, "3 min 20 s"),
        (3_900.0, "1 h 5 min"),
        (273_600.0, "3 d 4 h"),
        (-1.0, "–"),
    ] {
        assert_eq!(seconds(value), expected, "{value}");
    }
    for (millis, expected) in [(0, "0 s"), (999, "999 ms"), (2_540, "2.5 s")] {
        assert_eq!(span(millis), expected);
    }
}

#[test]
fn spans_are_typed_in_the_units_of_flags() {
    for (millis, expected) in [
        (0, "0s"),
        (20, "20ms"),
        (59_540, "59.5s"),
        (60_999, "1m"),
        (3_930_000, "1h 5m"),
    ] {
        assert_eq!(typed_span(Duration::from_millis(millis)), expected);
    }
}

#[test]
fn sizes_have_the_unit_that_reads_best() {
    for (value, expected) in [
        (0, "0 B"),
        (1_023, "1023 B"),
        (262_144, "256 KiB"),
        (1_572_864, "1.5 MiB"),
        (4_194_304, "4 MiB"),
        (8_589_934_592, "8,192 MiB"),
    ] {
        assert_eq!(bytes(value), expected);
    }
}

#[test]
fn times_are_read_off_a_clock() {
    for (seconds, expected) in [
        (0.0, "0:00"),
        (7.5, "0:07.5"),
        (750.0, "12:30"),
        (59.99, "1:00"),
        (3_725.0, "1:02:05"),
        (90_000.0, "25:00:00"),
    ] {
        assert_eq!(clock(seconds), expected, "{seconds}");
    }
}
