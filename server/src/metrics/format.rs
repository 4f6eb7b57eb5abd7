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
mod tests;
