//! Draws a chart: what happened behind everything, then the grid, the lines, the axes.

use crate::report::chart::bands::{self, Bands};
use crate::report::chart::picture::Picture;
use crate::report::chart::scale::{Heights, Tick, time_unit, times};
use crate::report::chart::xml::{Markup, coordinate, escaped, exact};
use crate::report::chart::{Chart, Join, Series, Size, legend, thin};

/// More lines than this from top to bottom, to a picture's unit of width, hide the chart: then they
/// are short, at the top.
const MOMENTS_MAX: f64 = 0.05;
/// If more than this part of a chart would be shaded, shades are short, too.
const SHADED_MAX: f64 = 0.6;

/// Where the points of a chart are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    /// Time at the right.
    pub(super) end_s: f64,
    /// Value at the top.
    pub(super) most: f64,
}

impl Frame {
    pub(super) fn x(&self, at_s: f64) -> f64 {
        let end = if self.end_s > 0.0 { self.end_s } else { 1.0 };
        self.left + (at_s / end).clamp(0.0, 1.0) * (self.right - self.left)
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - (value / self.most).clamp(0.0, 1.0) * (self.bottom - self.top)
    }
}

/// Measures of a size, in units of the picture.
struct Measures {
    width: f64,
    plot: f64,
    left: f64,
    ticks: usize,
    times: usize,
}

/// Margin at the right.
pub(super) const RIGHT: f64 = 18.0;
/// Margin at the left of what is as wide as the page.
pub(super) const LEFT: f64 = 66.0;
/// How wide that is.
pub(super) const WIDE: f64 = 960.0;
/// Below the axis of time.
pub(super) const AXIS: f64 = 24.0;

const fn measures(size: Size) -> Measures {
    match size {
        Size::Wide => Measures {
            width: WIDE,
            plot: 220.0,
            left: LEFT,
            ticks: 5,
            times: 10,
        },
        Size::Low => Measures {
            width: WIDE,
            plot: 110.0,
            left: LEFT,
            ticks: 3,
            times: 10,
        },
        Size::Small => Measures {
            width: 320.0,
            plot: 92.0,
            left: 50.0,
            ticks: 3,
            times: 4,
        },
    }
}

impl Chart {
    /// For a page, which tells what happened from outside in a chart of its own.
    pub(in crate::report) fn in_page(&self) -> String {
        self.picture(false).in_page()
    }

    /// For a file of its own.
    pub(in crate::report) fn alone(&self) -> String {
        self.picture(true).alone()
    }

    /// Draws it. What several small ones share has its legend elsewhere.
    pub(super) fn picture(&self, explains_bands: bool) -> Picture {
        let measures = measures(self.size);
        let mut body = Markup::default();
        let mut top = 10.0;
        if self.size != Size::Small {
            let keys = legend::keys(&[self], explains_bands);
            let width = measures.width - measures.left - RIGHT;
            top += legend::draw(&mut body, &keys, (measures.left, 0.0), width);
        }
        let most = self.most().max(self.at_least);
        let heights = Heights::new(most, self.unit, measures.ticks);
        let frame = Frame {
            left: measures.left,
            right: measures.width - RIGHT,
            top,
            bottom: top + measures.plot,
            end_s: self.end_s,
            most: heights.top,
        };
        draw_bands(&mut body, &self.bands, &frame);
        draw_heights(&mut body, &heights.ticks, &frame);
        for series in &self.series {
            self.draw_series(&mut body, series, &frame);
        }
        if let Some((limit, label)) = &self.limit {
            draw_limit(&mut body, *limit, label, &frame);
        }
        draw_times(&mut body, &frame, measures.times);
        Picture {
            id: self.id.clone(),
            title: self.title.clone(),
            about: self.about.clone(),
            width: measures.width,
            height: frame.bottom + AXIS,
            data: format!(
                r#" data-left="{}" data-right="{}" data-top="{}" data-bottom="{}" data-most="{}" data-end="{}" data-unit="{:?}"{}"#,
                frame.left,
                frame.right,
                frame.top,
                frame.bottom,
                frame.most,
                frame.end_s,
                self.unit,
                match self.largest() > heights.top {
                    true => r#" data-capped="""#,
                    false => "",
                }
            ),
            body: body.0,
            is_small: self.size == Size::Small,
        }
    }

    fn draw_series(&self, out: &mut Markup, series: &Series, frame: &Frame) {
        let points = self.times.iter().zip(&series.values);
        let runs = thin::runs(points.map(|(at, value)| (frame.x(*at), *value)));
        let join = series.look.join();
        let (class, name) = (series.look.class(), series.look.name());
        out.add(format_args!(
            r#"<g class="series {class}" data-name="{name}" data-order="{}">"#,
            series.look as u8
        ));
        // A script reads values off the line: across the page they are exact to a ten-thousandth.
        let decimals = if self.size == Size::Small { 1 } else { 2 };
        let mut line = String::new();
        for run in runs {
            let points: Vec<Point> = run
                .into_iter()
                .map(|(x, value)| Point::new(x, frame.y(value), decimals))
                .collect();
            let path = match join {
                Join::Step => stepped(&points),
                Join::Line | Join::Area => straight(&points),
            };
            if let (Join::Area, Some(Point { x, .. })) = (join, points.first()) {
                let bottom = coordinate(frame.bottom);
                out.add(format_args!(
                    r#"<path class="fill" d="{path}V{bottom}H{x}Z"/>"#
                ));
            }
            line += &path;
        }
        if !line.is_empty() {
            out.add(format_args!(r#"<path class="stroke" d="{line}"/>"#));
        }
        out.add(format_args!("</g>"));
    }
}

/// A point as it is written.
struct Point {
    x: String,
    y: String,
}

impl Point {
    fn new(x: f64, y: f64, decimals: usize) -> Self {
        Self {
            x: coordinate(x),
            y: exact(y, decimals),
        }
    }

    /// One that stands alone is drawn as a dash, or nobody would see it.
    fn lone(&self) -> String {
        let Self { x, y } = self;
        let end = x.parse::<f64>().map_or(0.0, |x| x + 2.0);
        format!("M{x} {y}H{}", coordinate(end))
    }
}

/// Straight from point to point; what lies between two of the same height is left out.
fn straight(points: &[Point]) -> String {
    if let [point] = points {
        return point.lone();
    }
    let mut path = String::new();
    for (index, Point { x, y }) in points.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| points.get(index));
        let after = points.get(index + 1);
        let is_between =
            before.is_some_and(|point| &point.y == y) && after.is_some_and(|point| &point.y == y);
        if is_between {
            continue;
        }
        path.push(if index == 0 { 'M' } else { 'L' });
        path += x;
        path.push(' ');
        path += y;
    }
    path
}

/// Along, then up or down.
fn stepped(points: &[Point]) -> String {
    let (first, rest) = match points {
        [] => return String::new(),
        [point] => return point.lone(),
        [first, rest @ ..] => (first, rest),
    };
    let mut path = format!("M{} {}", first.x, first.y);
    let (mut at, mut drawn_to) = (first, &first.x);
    for point in rest {
        if point.y != at.y {
            path += &format!("H{}V{}", point.x, point.y);
            drawn_to = &point.x;
        }
        at = point;
    }
    if at.x != *drawn_to {
        path += &format!("H{}", at.x);
    }
    path
}

fn draw_bands(out: &mut Markup, bands: &Bands, frame: &Frame) {
    let (top, bottom) = (coordinate(frame.top), coordinate(frame.bottom));
    if bands.settled_s > 0.0 && bands.settled_s < frame.end_s {
        let (from, to) = (coordinate(frame.left), coordinate(frame.x(bands.settled_s)));
        let path = format!("M{from} {top}H{to}V{bottom}H{from}Z");
        draw_path(out, "early", &path);
    }
    let spans = bands.wrong.iter();
    let spans = spans.map(|(from, to)| (frame.x(*from), frame.x(*to)));
    let spans = bands::joined(spans.collect());
    let shaded: f64 = spans.iter().map(|(from, to)| to - from).sum();
    // Where nearly all is shaded, shades tell nothing from another.
    let wrong_bottom = match shaded > (frame.right - frame.left) * SHADED_MAX {
        true => coordinate(frame.top + 8.0),
        false => bottom.clone(),
    };
    let mut path = String::new();
    for (from, to) in spans {
        let (from, to) = (coordinate(from), coordinate(to.min(frame.right)));
        path += &format!("M{from} {top}H{to}V{wrong_bottom}H{from}Z");
    }
    draw_path(out, "wrong", &path);
    for (class, moments) in [
        ("moment", &bands.moments),
        ("change", &bands.changes),
        ("heal", &bands.heals),
    ] {
        let columns = bands::columns(moments.iter().map(|at| frame.x(*at)));
        #[expect(clippy::cast_precision_loss, reason = "at most one a column")]
        let is_crowded = columns.len() as f64 > (frame.right - frame.left) * MOMENTS_MAX;
        let bottom = match is_crowded {
            true => coordinate(frame.top + 8.0),
            false => bottom.clone(),
        };
        let paths = columns.iter();
        let path: String = paths
            .map(|x| format!("M{} {top}V{bottom}", coordinate(*x)))
            .collect();
        draw_path(out, class, &path);
    }
}

fn draw_path(out: &mut Markup, class: &str, path: &str) {
    if !path.is_empty() {
        out.add(format_args!(r#"<path class="{class}" d="{path}"/>"#));
    }
}

fn draw_heights(out: &mut Markup, ticks: &[Tick], frame: &Frame) {
    let (left, right) = (coordinate(frame.left), coordinate(frame.right));
    for tick in ticks {
        let y = coordinate(frame.y(tick.at));
        draw_path(out, "grid", &format!("M{left} {y}H{right}"));
        out.add(format_args!(
            r#"<text x="{}" y="{}" text-anchor="end">{}</text>"#,
            coordinate(frame.left - 7.0),
            coordinate(frame.y(tick.at) + 4.0),
            escaped(&tick.label),
        ));
    }
}

fn draw_limit(out: &mut Markup, limit: f64, label: &str, frame: &Frame) {
    if !limit.is_finite() {
        return;
    }
    let y = frame.y(limit);
    let (left, right) = (coordinate(frame.left), coordinate(frame.right));
    let line = format!("M{left} {}H{right}", coordinate(y));
    draw_path(out, "level", &line);
    // Above the line, unless that is above the chart.
    let y = if y - 16.0 < frame.top {
        y + 14.0
    } else {
        y - 5.0
    };
    out.add(format_args!(
        r#"<text class="limit" x="{}" y="{}" text-anchor="end">{}</text>"#,
        coordinate(frame.right - 4.0),
        coordinate(y),
        escaped(label),
    ));
}

/// The axis of time, with how it is to be read at its beginning.
pub(super) fn draw_times(out: &mut Markup, frame: &Frame, ticks_max: usize) {
    let (left, right) = (coordinate(frame.left), coordinate(frame.right));
    let bottom = coordinate(frame.bottom);
    draw_path(out, "axis", &format!("M{left} {bottom}H{right}"));
    let y = coordinate(frame.bottom + 17.0);
    for tick in times(frame.end_s, ticks_max) {
        let x = frame.x(tick.at);
        let at = coordinate(x);
        draw_path(out, "axis", &format!("M{at} {bottom}v4"));
        out.add(format_args!(
            r#"<text x="{at}" y="{y}" text-anchor="middle">{}</text>"#,
            escaped(&tick.label),
        ));
    }
    // Small charts have no room for it; they stand below others that say it.
    if frame.left < LEFT {
        return;
    }
    out.add(format_args!(
        r#"<text x="{}" y="{y}" text-anchor="end">{}</text>"#,
        coordinate(frame.left - 22.0),
        time_unit(frame.end_s, ticks_max),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(points: &[(f64, f64)]) -> Vec<Point> {
        points.iter().map(|(x, y)| Point::new(*x, *y, 2)).collect()
    }

    #[test]
    fn steps_go_along_and_then_up_or_down() {
        let four = points(&[(0.0, 5.0), (1.0, 5.0), (2.0, 3.0), (3.0, 3.0)]);
        assert_eq!(stepped(&four), "M0 5H2V3H3");
        assert_eq!(stepped(&[]), "");
        assert_eq!(stepped(&points(&[(4.0, 1.0)])), "M4 1H6");
    }

    #[test]
    fn a_flat_line_is_two_points() {
        let four = points(&[(0.0, 5.0), (1.0, 5.0), (2.0, 5.0), (3.0, 6.55)]);
        assert_eq!(straight(&four), "M0 5L2 5L3 6.55");
        assert_eq!(straight(&[]), "");
        assert_eq!(straight(&points(&[(4.0, 1.0)])), "M4 1H6");
    }
}
