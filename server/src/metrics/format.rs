//! The two text formats of metrics: which one a scraper wants, and how the one becomes the other.
//!
//! Metrics are written as OpenMetrics 1.0. Prometheus' older text format 0.0.4 says the same with small differences:
//! a family has the name of its samples, so that of a counter ends in `_total`; there are no infos, but gauges that
//! end in `_info`; units and the end are not marked. Who accepts both alike gets the older one, as who says nothing:
//! browsers, curl and `promtool check metrics` read it.

use crate::unhurried::Steps;

/// A text format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format 0.0.4.
    Plain,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

/// Lines that are written before others go first.
const LINES_PER_STEP: usize = 4_096;

/// The media type of OpenMetrics.
const OPEN_METRICS: &str = "application/openmetrics-text";

impl Format {
    /// The one that the header `Accept` of a request asks for.
    pub fn accepted_by(accept: Option<&str>) -> Self {
        let (mut open_metrics, mut plain) = (0.0, 0.0);
        for range in accept.unwrap_or_default().split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default().to_ascii_lowercase();
            let (mut quality, mut is_known_version) = (1.0, true);
            for part in parts {
                match part
                    .split_once('=')
                    .map(|(name, value)| (name.trim(), value.trim()))
                {
                    Some(("q", value)) => quality = value.parse().unwrap_or(0.0),
                    Some(("version", "1.0.0" | "0.0.1")) | None => {}
                    Some(("version", _)) if media == OPEN_METRICS => is_known_version = false,
                    Some(_) => {}
                }
            }
            match &*media {
                OPEN_METRICS if is_known_version => open_metrics = f64::max(open_metrics, quality),
                "text/plain" | "text/*" | "*/*" => plain = f64::max(plain, quality),
                _ => {}
            }
        }
        if open_metrics > plain {
            Self::OpenMetrics
        } else {
            Self::Plain
        }
    }

    /// The content type of a text in it.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// The same metrics in this format.
    pub fn of_open_metrics(self, text: String) -> String {
        match self {
            Self::OpenMetrics => text,
            Self::Plain => plain(&text),
        }
    }
}

fn plain(open_metrics: &str) -> String {
    let mut out = String::with_capacity(open_metrics.len() + 1_024);
    // A family's type follows its help, whose name depends on the type.
    let mut help = "";
    let mut steps = Steps::new(LINES_PER_STEP);
    for line in open_metrics.lines() {
        steps.step();
        if let Some(text) = line.strip_prefix("# HELP ") {
            help = text.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').unwrap_or((family, "untyped"));
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                _ => ("", kind),
            };
            for part in [
                "# HELP ",
                name,
                suffix,
                " ",
                help,
                "\n# TYPE ",
                name,
                suffix,
                " ",
                kind,
                "\n",
            ] {
                out.push_str(part);
            }
        } else if !line.starts_with("# ") {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
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
                // As Prometheus 2 asks.
                Some(
                    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                     text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                ),
                Format::OpenMetrics,
            ),
            (
                // As Prometheus 3 asks that knows a version which does not exist yet.
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
}
