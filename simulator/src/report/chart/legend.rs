//! Legends: what each line and shade of a chart is.

use crate::report::chart::bands::Bands;
use crate::report::chart::xml::{Markup, coordinate};
use crate::report::chart::{Chart, Look};

/// Height of a row of keys.
pub(super) const ROW: f64 = 20.0;
/// About the mean width of a character, in the size of legends.
const CHARACTER: f64 = 6.7;

/// Something that is explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// A line.
    Line(Look),
    /// A shade: something was wrong for some time.
    Wrong,
    /// A thin line: something went wrong at once.
    Moment,
    /// A dotted line: something was changed.
    Change,
    /// A green line: all that was wrong was over.
    Heal,
    /// A grey shade: before averages are taken.
    Early,
}

impl Key {
    const fn name(self) -> &'static str {
        match self {
            Self::Line(look) => look.name(),
            Self::Wrong => "a fault lasts",
            Self::Moment => "a fault at once",
            Self::Change => "a change from outside",
            Self::Heal => "faults are over",
            Self::Early => "not in averages",
        }
    }

    /// How wide its sample is.
    const fn width(self) -> f64 {
        match self {
            Self::Line(_) => 24.0,
            Self::Wrong | Self::Early => 14.0,
            Self::Moment | Self::Change | Self::Heal => 4.0,
        }
    }

    /// A small picture of it.
    fn sample(self, out: &mut Markup, x: f64, y: f64) {
        let (x, end) = (coordinate(x), coordinate(x + self.width()));
        let (top, middle, bottom) = (coordinate(y - 6.0), coordinate(y), coordinate(y + 6.0));
        match self {
            Self::Line(_) => {
                out.add(format_args!(
                    r#"<path class="stroke" d="M{x} {middle}H{end}"/>"#
                ));
            }
            Self::Wrong | Self::Early => {
                let class = if self == Self::Wrong {
                    "wrong"
                } else {
                    "early"
                };
                out.add(format_args!(
                    r#"<path class="{class}" d="M{x} {top}H{end}V{bottom}H{x}Z"/>"#
                ));
            }
            Self::Moment | Self::Change | Self::Heal => {
                let class = match self {
                    Self::Moment => "moment",
                    Self::Heal => "heal",
                    _ => "change",
                };
                out.add(format_args!(
                    r#"<path class="{class}" d="M{x} {top}m2 0V{bottom}"/>"#
                ));
            }
        }
    }
}

/// What charts have to explain; what happened from outside only where it is not told elsewhere.
pub(super) fn keys(charts: &[&Chart], with_bands: bool) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut add = |key| {
        if !keys.contains(&key) {
            keys.push(key);
        }
    };
    for chart in charts {
        for series in &chart.series {
            add(Key::Line(series.look));
        }
    }
    for chart in charts.iter().filter(|_| with_bands) {
        let Bands {
            settled_s,
            wrong,
            moments,
            changes,
            heals,
        } = &*chart.bands;
        if *settled_s > 0.0 {
            add(Key::Early);
        }
        if !wrong.is_empty() {
            add(Key::Wrong);
        }
        if !moments.is_empty() {
            add(Key::Moment);
        }
        if !changes.is_empty() {
            add(Key::Change);
        }
        if !heals.is_empty() {
            add(Key::Heal);
        }
    }
    keys.sort();
    keys
}

/// Keys in rows of a width, from a point on; and how high they are.
pub(super) fn draw(out: &mut Markup, keys: &[Key], from: (f64, f64), width: f64) -> f64 {
    if keys.is_empty() {
        return 0.0;
    }
    let (left, top) = from;
    let (mut x, mut y) = (left, top + ROW / 2.0);
    for key in keys {
        let length = key.width() + 6.0 + CHARACTER * characters(key.name());
        if x > left && x + length > left + width {
            x = left;
            y += ROW;
        }
        let (class, look) = match key {
            Key::Line(look) => (look.class(), look.name()),
            _ => ("", ""),
        };
        out.add(format_args!(
            r#"<g class="key {class}" data-name="{look}">"#
        ));
        key.sample(out, x, y);
        out.add(format_args!(
            r#"<text x="{}" y="{}">{}</text></g>"#,
            coordinate(x + key.width() + 6.0),
            coordinate(y + 4.0),
            key.name(),
        ));
        x += length + 16.0;
    }
    y + ROW / 2.0 - top
}

/// A legend that many small charts share, in a page.
pub(in crate::report) fn keys_in_page(charts: &[&Chart]) -> String {
    let mut out = Markup::default();
    for key in keys(charts, false) {
        let (class, look) = match key {
            Key::Line(look) => (look.class(), look.name()),
            _ => ("", ""),
        };
        out.add(format_args!(
            r#"<span class="key" data-name="{look}"><svg class="chart sample" width="24" height="14" viewBox="0 0 24 14" aria-hidden="true"><g class="{class}">"#
        ));
        key.sample(&mut out, 0.0, 7.0);
        out.add(format_args!("</g></svg>{}</span>", key.name()));
    }
    out.0
}

fn characters(text: &str) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a few")]
    let count = text.chars().count() as f64;
    count
}
