//! The two text formats of metrics: the choice for a scraper, and the conversion.
//!
//! Metrics are written as OpenMetrics 1.0. Prometheus' older text format 0.0.4 differs little: a family has the name of
//! its samples, so a counter's family ends in `_total`; an info is a gauge that ends in `_info`; units and the end are
//! not marked. A scraper gets the older format if it accepts both alike or names none: browsers, curl and `promtool
//! check metrics` read it.

use std::fmt::Write;

use crate::yielding::YieldEvery;

/// A text format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format 0.0.4.
    Plain,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

/// Lines to write before the thread yields.
const LINES_PER_STEP: usize = 4_096;

/// The media type of OpenMetrics.
const OPEN_METRICS: &str = "application/openmetrics-text";

impl Format {
    /// Returns the format that the `Accept` header of a request asks for.
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

    /// Returns the content type of a text in this format.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Converts metrics to this format.
    pub fn of_open_metrics(self, text: String) -> String {
        match self {
            Self::OpenMetrics => text,
            Self::Plain => plain(&text),
        }
    }
}

fn plain(open_metrics: &str) -> String {
    let mut out = String::with_capacity(open_metrics.len() + 1_024);
    // The type of a family follows its help. The name in the help depends on the type, so the help waits.
    let mut help = "";
    let mut steps = YieldEvery::<LINES_PER_STEP>::default();
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
            let _ = write!(
                out,
                "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n"
            );
        } else if !line.starts_with("# ") {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests;
