//! What happened from outside, on the axis of time: a lane for each kind.

use crate::recording::{Mark, Nature};
use crate::report::chart::bands;
use crate::report::chart::draw::{AXIS, Frame, LEFT, RIGHT, WIDE, draw_times};
use crate::report::chart::picture::Picture;
use crate::report::chart::xml::{Markup, coordinate, escaped};
use crate::report::faults::{self, Kind};
use crate::report::numbers::{clock, count};
use crate::report::table::shortened;

/// Height of a lane.
const LANE: f64 = 22.0;
/// As many kinds as there are, and some that are yet to come.
const LANES_MAX: usize = 24;
/// More marks than this are not told one by one where the pointer stands.
const TOLD_MAX: usize = 400;

/// The lanes.
#[derive(Clone, Debug)]
pub(in crate::report) struct Lanes<'a> {
    pub(in crate::report) id: String,
    pub(in crate::report) end_s: f64,
    pub(in crate::report) marks: &'a [Mark],
}

impl Lanes<'_> {
    pub(in crate::report) fn picture(&self) -> Picture {
        let mut kinds = faults::by_kind(self.marks);
        kinds.truncate(LANES_MAX);
        #[expect(clippy::cast_precision_loss, reason = "a few")]
        let height = kinds.len() as f64 * LANE;
        let frame = Frame {
            left: LEFT,
            right: WIDE - RIGHT,
            top: 4.0,
            bottom: 4.0 + height,
            end_s: self.end_s,
            most: 1.0,
        };
        let mut body = Markup::default();
        let mut top = frame.top;
        for kind in &kinds {
            draw_lane(&mut body, kind, &frame, top);
            top += LANE;
        }
        draw_times(&mut body, &frame, 10);
        Picture {
            id: self.id.clone(),
            title: "What happened".to_owned(),
            about: format!(
                "{} events of {} kinds, a lane for each kind, over time.",
                count(self.marks.len()),
                kinds.len()
            ),
            width: WIDE,
            height: frame.bottom + AXIS,
            data: format!(
                r#" data-left="{}" data-right="{}" data-top="{}" data-bottom="{}" data-end="{}""#,
                frame.left, frame.right, frame.top, frame.bottom, frame.end_s
            ),
            body: body.0,
            is_small: false,
        }
    }
}

fn draw_lane(out: &mut Markup, kind: &Kind<'_>, frame: &Frame, top: f64) {
    let middle = top + LANE / 2.0;
    out.add(format_args!(
        r#"<path class="grid" d="M{} {m}H{}"/><text x="{}" y="{}" text-anchor="end">{}</text>"#,
        coordinate(frame.left),
        coordinate(frame.right),
        coordinate(frame.left - 7.0),
        coordinate(middle + 4.0),
        escaped(&shortened(kind.kind.as_str(), 10)),
        m = coordinate(middle),
    ));
    let class = match kind.kind.nature() {
        Nature::Fault => "lane",
        Nature::Heal => "lane heal",
        Nature::HandOver | Nature::Templates | Nature::Demand => "lane soft",
    };
    let shape = |from: f64, to: f64| {
        // A moment is a narrow diamond, what lasts is a bar.
        let (high, low) = (coordinate(middle - 6.0), coordinate(middle + 6.0));
        match to - from < 3.0 {
            true => format!(
                "M{} {m}L{x} {high}L{} {m}L{x} {low}Z",
                coordinate(from - 4.0),
                coordinate(from + 4.0),
                m = coordinate(middle),
                x = coordinate(from),
            ),
            false => {
                let (from, to) = (coordinate(from), coordinate(to));
                format!("M{from} {high}H{to}V{low}H{from}Z")
            }
        }
    };
    let span = |mark: &Mark| {
        let from = frame.x(mark.at_s);
        (from, mark.until_s.map_or(from, |until| frame.x(until)))
    };
    let marks = kind.marks.iter().filter(|mark| mark.at_s.is_finite());
    if kind.marks.len() > TOLD_MAX {
        let spans = bands::joined(marks.map(|mark| span(mark)).collect());
        let path: String = spans.iter().map(|(from, to)| shape(*from, *to)).collect();
        out.add(format_args!(r#"<path class="{class}" d="{path}"/>"#));
        return;
    }
    for mark in marks {
        let (from, to) = span(mark);
        let until = mark.until_s.map(|until| format!(" to {}", clock(until)));
        out.add(format_args!(
            r#"<path class="{class}" d="{}"><title>{}{}: {}</title></path>"#,
            shape(from, to),
            clock(mark.at_s),
            until.unwrap_or_default(),
            escaped(&mark.text),
        ));
    }
}
