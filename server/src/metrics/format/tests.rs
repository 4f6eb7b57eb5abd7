//! The format that an `Accept` header gets.

use super::*;

#[test]
fn who_asks_for_nothing_or_for_either_alike_gets_plain_text() {
    for (accept, expected) in [
        (None, Format::Plain),
        (Some(""), Format::Plain),
        (Some("*/*"), Format::Plain),
        (Some("text/plain"), Format::Plain),
        (Some("text/plain;version=0.0.4"), Format::Plain),
        (
            Some("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
            Format::Plain,
        ),
        (Some("application/openmetrics-text"), Format::OpenMetrics),
        (
            Some("Application/OpenMetrics-Text; version=1.0.0; charset=utf-8"),
            Format::OpenMetrics,
        ),
        (
            // Header of Prometheus 2.
            Some(
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                     text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            ),
            Format::OpenMetrics,
        ),
        (
            // Header of a Prometheus 3 with a version that does not exist yet.
            Some(
                "application/openmetrics-text;version=9.9;q=0.6,text/plain;version=1.0.0;q=0.4,*/*;q=0.2",
            ),
            Format::Plain,
        ),
        (
            Some("application/openmetrics-text;q=0.2,text/plain;q=0.5"),
            Format::Plain,
        ),
        (
            Some("application/openmetrics-text;q=0,application/json"),
            Format::Plain,
        ),
        (
            Some("application/openmetrics-text;q=often,*/*;q=0.1"),
            Format::Plain,
        ),
    ] {
        assert_eq!(Format::accepted_by(accept), expected, "{accept:?}");
    }
}

#[test]
fn plain_text_names_a_family_as_its_samples() {
    let open_metrics = "# HELP a_build The version.\n# TYPE a_build info\na_build_info{v=\"1\"} 1\n\
             # HELP a_calls Calls\n# TYPE a_calls counter\na_calls_total 3\n\
             # HELP a_seconds How long\n# TYPE a_seconds histogram\n# UNIT a_seconds seconds\n\
             a_seconds_sum 0.5\na_seconds_count 1\na_seconds_bucket{le=\"+Inf\"} 1\n\
             # HELP a_up # up\n# TYPE a_up gauge\na_up{x=\"# EOF\"} 1.0\n# EOF\n";
    let expected = "# HELP a_build_info The version.\n# TYPE a_build_info gauge\na_build_info{v=\"1\"} 1\n\
             # HELP a_calls_total Calls\n# TYPE a_calls_total counter\na_calls_total 3\n\
             # HELP a_seconds How long\n# TYPE a_seconds histogram\n\
             a_seconds_sum 0.5\na_seconds_count 1\na_seconds_bucket{le=\"+Inf\"} 1\n\
             # HELP a_up # up\n# TYPE a_up gauge\na_up{x=\"# EOF\"} 1.0\n";
    let text = open_metrics.to_owned();
    assert_eq!(Format::Plain.of_open_metrics(text.clone()), expected);
    assert_eq!(Format::OpenMetrics.of_open_metrics(text), open_metrics);
}
