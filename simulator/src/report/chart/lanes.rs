//! What happened from outside, on the axis of time: a lane for each kind.

use std::fmt::Write;

use crate::recording::{Mark, Nature};
use crate::report::chart::{attribute, chart_bands};
use crate::report::mark_kinds::{self, MarksOfKind};
use doorward_pages::numbers::clock;

/// As many kinds as there are, and some that are yet to come.
const LANES_MAX: usize = 24;
/// More marks than this have no title each.
const TITLED_MAX: usize = 400;
/// Shorter than this part of the time, something is shown as a moment.
const MOMENT: f64 = 0.004;
/// So many times stand below.
const TIMES: u32 = 5;

/// The lanes as they stand in a page.
pub(in crate::report) fn in_page(marks: &[Mark], end_s: f64) -> String {
    let mut kinds = mark_kinds::by_kind(marks);
    kinds.truncate(LANES_MAX);
    let mut out = format!(
        r#"<div class="lanes" data-end="{end_s}" role="img" aria-label="{} events, a lane for each kind">"#,
        marks.len()
    );
    for kind in &kinds {
        lane(&mut out, kind, end_s);
    }
    out += r#"<div class="times">"#;
    for part in 0..=TIMES {
        let time = end_s * f64::from(part) / f64::from(TIMES);
        out += &format!("<span>{}</span>", clock(time));
    }
    out + "</div></div>"
}

fn lane(out: &mut String, kind: &MarksOfKind<'_>, end_s: f64) {
    let class = match kind.kind.nature() {
        Nature::Fault => "",
        Nature::Heal => " heal",
        Nature::HandOver | Nature::Templates | Nature::Demand => " soft",
    };
    let name = kind.kind.as_str();
    // Writing into a string does not fail.
    let _ = write!(out, r#"<div class="lane{class}"><span>{name}</span><div>"#);
    let marks = kind.marks.iter().filter(|mark| mark.at_s.is_finite());
    let span = |mark: &Mark| (mark.at_s, mark.until_s.unwrap_or(mark.at_s));
    if kind.marks.len() > TITLED_MAX {
        let spans = marks.map(|mark| span(mark)).collect();
        for (from, until) in chart_bands::joined(spans, end_s / 1000.0) {
            shape(out, from, until, end_s, "");
        }
    } else {
        for mark in marks {
            let (from, until) = span(mark);
            let lasts = mark.until_s.map(|until| format!(" to {}", clock(until)));
            let lasts = lasts.unwrap_or_default();
            let text = format!("{}{lasts}: {}", clock(mark.at_s), mark.text);
            shape(out, from, until, end_s, &text);
        }
    }
    *out += "</div></div>";
}

/// A moment is a diamond, what lasts is a bar.
fn shape(out: &mut String, from: f64, until: f64, end_s: f64, text: &str) {
    let end = if end_s > 0.0 { end_s } else { 1.0 };
    let part = |time: f64| (100.0 * time / end).clamp(0.0, 100.0);
    let (left, width) = (part(from), part(until) - part(from));
    let class = match until - from < end * MOMENT {
        true => r#" class="moment""#.to_owned(),
        false => String::new(),
    };
    let width = match class.is_empty() {
        true => format!(";width:{width:.2}%"),
        false => String::new(),
    };
    let title = match text.is_empty() {
        true => String::new(),
        false => format!(r#" title="{}""#, attribute(text)),
    };
    let _ = write!(
        out,
        r#"<i{class} style="left:{left:.2}%{width}"{title}></i>"#
    );
}
