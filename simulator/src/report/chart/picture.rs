//! What is drawn, for a page or for a file of its own.

use crate::report::chart::style::css_alone;
use crate::report::chart::xml::{Markup, coordinate, escaped};
use crate::report::chart::{Chart, legend};

/// A drawing, without what is around it.
#[derive(Clone, Debug)]
pub(in crate::report) struct Picture {
    pub(in crate::report) id: String,
    pub(in crate::report) title: String,
    /// What is to be seen, for those who do not see it.
    pub(in crate::report) about: String,
    pub(super) width: f64,
    pub(super) height: f64,
    /// What a script needs to know of its axes, as attributes.
    pub(super) data: String,
    pub(super) body: String,
    pub(super) is_small: bool,
}

/// Between pictures, and around them.
const GAP: f64 = 16.0;
/// Room for a title.
const TITLE: f64 = 30.0;
/// Room for the title of one of several.
const SUBTITLE: f64 = 20.0;

impl Picture {
    /// For a page, which has the style and shows the title.
    pub(in crate::report) fn in_page(&self) -> String {
        let id = escaped(&self.id);
        format!(
            r#"<svg class="chart" id="{id}" viewBox="0 0 {} {}" role="img" aria-labelledby="{id}.t {id}.d"{}><title id="{id}.t">{}</title><desc id="{id}.d">{}</desc>{}</svg>"#,
            coordinate(self.width),
            coordinate(self.height),
            self.data,
            escaped(&self.title),
            escaped(&self.about),
            self.body,
        )
    }

    /// For a file of its own.
    pub(in crate::report) fn alone(&self) -> String {
        let mut body = Markup::default();
        let left = GAP;
        body.add(format_args!(
            r#"<svg x="{left}" y="{}" width="{w}" height="{h}" viewBox="0 0 {w} {h}">{}</svg>"#,
            coordinate(TITLE + GAP / 2.0),
            self.body,
            w = coordinate(self.width),
            h = coordinate(self.height),
        ));
        let size = (self.width + 2.0 * GAP, TITLE + self.height + GAP * 1.5);
        document(&self.title, &self.about, size, &body.0)
    }
}

/// Several charts in a file of their own, with one legend.
pub(in crate::report) fn sheet(title: &str, about: &str, charts: &[&Chart]) -> String {
    let pictures: Vec<Picture> = charts.iter().map(|chart| chart.picture(true)).collect();
    let Some(first) = pictures.first() else {
        return document(title, about, (320.0, TITLE + 2.0 * GAP), "");
    };
    let columns = match first.is_small {
        true => pictures.len().clamp(1, 3),
        false => 1,
    };
    #[expect(clippy::cast_precision_loss, reason = "at most 3")]
    let across = columns as f64;
    let width = across * (first.width + GAP) + GAP;
    let mut body = Markup::default();
    let mut top = TITLE + GAP / 2.0;
    if first.is_small {
        let keys = legend::keys(charts, true);
        top += legend::draw(&mut body, &keys, (GAP, top), width - 2.0 * GAP);
    }
    for row in pictures.chunks(columns) {
        let mut left = GAP;
        for picture in row {
            body.add(format_args!(
                r#"<text class="subtitle" x="{}" y="{}">{}</text><svg x="{}" y="{}" width="{w}" height="{h}" viewBox="0 0 {w} {h}">{}</svg>"#,
                coordinate(left + 4.0),
                coordinate(top + 15.0),
                escaped(&picture.title),
                coordinate(left),
                coordinate(top + SUBTITLE),
                picture.body,
                w = coordinate(picture.width),
                h = coordinate(picture.height),
            ));
            left += picture.width + GAP;
        }
        let height = row.iter().map(|picture| picture.height).fold(0.0, f64::max);
        top += SUBTITLE + height + GAP / 2.0;
    }
    document(title, about, (width, top + GAP / 2.0), &body.0)
}

fn document(title: &str, about: &str, (width, height): (f64, f64), body: &str) -> String {
    let (w, h) = (coordinate(width), coordinate(height));
    let (title, about) = (escaped(title), escaped(about));
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img" aria-labelledby="t d">
<title id="t">{title}</title>
<desc id="d">{about}</desc>
<style>{style}</style>
<rect class="ground" width="{w}" height="{h}"/>
<text class="title" x="{GAP}" y="26">{title}</text>
{body}
</svg>
"#,
        style = css_alone(),
    )
}
