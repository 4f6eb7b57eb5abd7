//! The comparison as one page: figures beside each other, and the charts of both under each other
//! on the same scales.

use std::fs;
use std::path::Path;

use askama::Template;

use crate::recording::Recording;
use crate::report::ReportError;
use crate::report::chart::{Chart, align};
use crate::report::charts::{Section, bands_in_page, end, happenings};
use crate::report::compare::{ComparedResource, ComparedRow, Comparison, Side, difference};
use crate::report::figures::Unit;
use crate::report::shortage_rows::Shift;
use crate::report::summary::what;
use crate::report::verdicts::{Headline, RunOutcome};
use doorward_pages::numbers::{percent, several};

/// Resources that have charts; all have figures.
const RESOURCES_MAX: usize = 12;
/// Clients that are listed, of each resource.
const SHIFTS_MAX: usize = 12;

#[derive(Template)]
#[template(path = "compare.html")]
struct ComparisonPage<'a> {
    title: String,
    style: String,
    script: String,
    sides: [SideView<'a>; 2],
    has_happenings: bool,
    shape: Vec<String>,
    resources: Vec<ResourceView<'a>>,
    charts_left_out: usize,
}

/// One of the two.
struct SideView<'a> {
    letter: &'static str,
    name: &'a str,
    scenario: &'a str,
    headline: String,
    tone: &'static str,
    facts: Vec<String>,
    happenings: Option<String>,
    bands: String,
}

/// A resource that both have.
struct ResourceView<'a> {
    id: &'a str,
    anchor: String,
    figures: &'a [ComparedRow],
    waits: &'a [ComparedRow],
    limits: &'a [ComparedRow],
    shifts: Vec<ShiftView<'a>>,
    /// How many more there are. Empty: none.
    shifts_left_out: String,
    /// Title, and the drawings of A and B. Empty: it has none.
    charts: Vec<(String, Option<String>, Option<String>)>,
}

/// How much of what it wants a client gets in A and in B.
struct ShiftView<'a> {
    client: &'a str,
    wanted: &'a str,
    a: String,
    b: String,
    difference: String,
    winner: &'static str,
}

impl<'a> ShiftView<'a> {
    fn new(shift: &'a Shift) -> Self {
        Self {
            client: &shift.client,
            wanted: &shift.wanted,
            a: percent(shift.a),
            b: percent(shift.b),
            difference: difference(Unit::Part, shift.a, shift.b),
            winner: if shift.a > shift.b { "A" } else { "B" },
        }
    }
}

/// The page.
pub fn page(a: &Side<'_>, b: &Side<'_>) -> Result<String, askama::Error> {
    let comparison = Comparison::of(a, b);
    let all = end(a.recording).max(end(b.recording));
    let resources = comparison.resources.iter().enumerate();
    let page = ComparisonPage {
        title: comparison.title(),
        style: doorward_pages::style(),
        script: doorward_pages::script(),
        sides: [side_view("A", a, all), side_view("B", b, all)],
        has_happenings: [a, b].iter().any(|side| !side.recording.marks.is_empty()),
        shape: comparison.shape.clone(),
        resources: resources
            .map(|(index, resource)| ResourceView {
                id: resource.id,
                anchor: format!("resource-{index}"),
                figures: &resource.figures,
                waits: &resource.waits,
                limits: &resource.limits,
                shifts: resource
                    .shifts
                    .iter()
                    .take(SHIFTS_MAX)
                    .map(ShiftView::new)
                    .collect(),
                shifts_left_out: match resource.shifts.len().saturating_sub(SHIFTS_MAX) {
                    0 => String::new(),
                    more => several(more, "client", "clients"),
                },
                charts: match index < RESOURCES_MAX {
                    true => charts(a.recording, b.recording, resource, index),
                    false => Vec::new(),
                },
            })
            .collect(),
        charts_left_out: comparison.resources.len().saturating_sub(RESOURCES_MAX),
    };
    page.render()
}

/// Writes the page. A file that is there already is replaced.
pub fn write_page(a: &Side<'_>, b: &Side<'_>, path: &Path) -> Result<(), ReportError> {
    let page = page(a, b).map_err(std::io::Error::other);
    let written = page.and_then(|page| fs::write(path, page));
    written.map_err(|source| ReportError::Write {
        path: path.to_owned(),
        source,
    })
}

fn side_view<'a>(letter: &'static str, side: &Side<'a>, end_s: f64) -> SideView<'a> {
    let headline = Headline::of(side.recording);
    SideView {
        letter,
        name: side.name,
        scenario: &side.recording.scenario,
        tone: match headline.outcome {
            RunOutcome::Fine => "good",
            RunOutcome::Violated => "bad",
            RunOutcome::NotJudged => "",
        },
        headline: headline.title,
        facts: what(side.recording),
        bands: bands_in_page(side.recording, &bands_of(letter)),
        // The same axis of time for both.
        happenings: happenings(side.recording, end_s),
    }
}

/// The id of what stands behind the lines of charts of one of the two.
fn bands_of(letter: &str) -> String {
    format!("bands-{letter}")
}

/// The charts that both or one have, in the order in which they are read.
fn charts(
    a: &Recording,
    b: &Recording,
    resource: &ComparedResource<'_>,
    index: usize,
) -> Vec<(String, Option<String>, Option<String>)> {
    let all = |recording, resource, letter: &str| -> Vec<Chart> {
        let prefix = format!("{letter}.{index}");
        let Section {
            whole,
            short,
            overshoot,
            fairness,
            serving,
            levels,
            ..
        } = Section::new(recording, resource, &prefix, &bands_of(letter));
        let first = std::iter::once(whole).chain(short);
        let then = first.chain([overshoot, fairness]);
        then.chain(levels).chain(serving).collect()
    };
    let mut left = all(a, resource.a, "A");
    let mut right = all(b, resource.b, "B");
    // What a chart is called after its prefix says what it shows.
    let kind = |chart: &Chart| {
        let name = chart.id.rsplit('.').next();
        name.unwrap_or_default().to_owned()
    };
    let mut pairs = Vec::new();
    for chart in &mut left {
        let mut same = right.iter_mut().find(|other| kind(other) == kind(chart));
        align(std::iter::once(&mut *chart).chain(same.as_deref_mut()));
        pairs.push((
            chart.title.clone(),
            Some(chart.in_page()),
            same.map(|other| other.in_page()),
        ));
    }
    for chart in &right {
        if !left.iter().any(|other| kind(other) == kind(chart)) {
            pairs.push((chart.title.clone(), None, Some(chart.in_page())));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::plausible;

    /// To look at the page, set the variable to a folder.
    #[test]
    fn charts_of_both_have_the_same_scales() {
        let (one, mut other) = (plausible::day(), plausible::tree(&[1, 4], 45, 1_800.0, 5.0));
        for sample in &mut other.resources[0].samples {
            sample.granted *= 0.9;
            sample.unfair *= 2.0;
        }
        other.resources[0].figures.unfairness = 0.051;
        other.resources[0].figures.overshoot_s = 0.0;
        other.resources[0].figures.peak_of_capacity = 0.99;
        other.scenario = "<two> levels".to_owned();
        let (a, b) = (
            Side {
                name: "before",
                recording: &one,
            },
            Side {
                name: "after",
                recording: &other,
            },
        );
        let folder = tempfile::tempdir().unwrap();
        let kept = std::env::var_os("DOORWARD_REPORT_FOLDER");
        let folder = kept.map_or_else(|| folder.path().to_owned(), Into::into);
        let path = folder.with_extension("compare.html");
        write_page(&a, &b, &path).unwrap();
        let page = fs::read_to_string(&path).unwrap();
        let scale = |id: &str| {
            let data = page.split_once(&format!("id=\"{id}\"")).unwrap().1;
            let top = data.split_once("\"top\":").unwrap().1;
            top.split_once(',').unwrap().0.to_owned()
        };
        assert_eq!(scale("A.0.capacity"), scale("B.0.capacity"));
        assert_eq!(scale("A.0.level-1"), scale("B.0.level-1"));
        assert!(page.contains("&#60;two&#62; levels") && !page.contains("<two>"));
    }
}
