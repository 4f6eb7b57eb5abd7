//! The report as one page that needs nothing else: the verdict first, then the figures, then charts
//! with how to read them. It works without its script, which only adds a cursor and values.

mod section;

use askama::Template;

use crate::recording::{Checker, Mark, Nature, Recording, ResourceRecording, Verdict};
use crate::report::charts::{bands_in_page, end, happenings};
use crate::report::figures::{FIGURES, Figure};
use crate::report::html::section::SectionView;
use crate::report::summary::{what, work};
use crate::report::verdicts::{self, Headline, RunOutcome};
use doorward_pages::numbers::{clock, count, seconds, several};

/// Resources that have charts in the page; the others have theirs in files.
const RESOURCES_MAX: usize = 12;
/// The id of what stands behind the lines of charts.
pub(super) const BANDS: &str = "bands";
/// What happened is listed up to here.
const MARKS_MAX: usize = 300;
/// So many resources have their figures beside each other; more have a row each.
const COLUMNS_MAX: usize = 3;
/// What is shown in large, if there is one resource.
const TILES: [&str; 5] = [
    "demand met",
    "clients short",
    "utilisation",
    "peak of capacity",
    "starvation, longest",
];

#[derive(Template)]
#[template(path = "report.html")]
struct ReportPage<'a> {
    recording: &'a Recording,
    style: String,
    script: String,
    bands: String,
    headline: Headline,
    /// Of the headline.
    tone: &'static str,
    facts: Vec<String>,
    work: Vec<String>,
    command: String,
    /// What is judged.
    verdicts: Vec<VerdictView>,
    /// What is only measured.
    unjudged: Vec<VerdictView>,
    figures: &'static [Figure],
    rows: Vec<FiguresView<'a>>,
    /// The same, a row a figure: where there are few resources.
    columns: Vec<FigureView>,
    tiles: Vec<Tile>,
    /// Whether the resource of each row has to be named.
    names_resources: bool,
    happenings: Option<String>,
    happened: String,
    sections: Vec<SectionView<'a>>,
    sections_left_out: usize,
    marks: Vec<MarkView<'a>>,
    marks_left_out: String,
    settled: String,
    sampled: String,
}

/// A verdict as a row.
struct VerdictView {
    checker: &'static str,
    /// What it looks at; empty if a row above says it.
    about: &'static str,
    resource: String,
    found: String,
    limit: String,
    judgement: &'static str,
    tone: &'static str,
    at_s: Option<f64>,
    at: String,
    detail: String,
}

/// A figure of a few resources as a row.
struct FigureView {
    name: &'static str,
    about: &'static str,
    /// Each, and whether it should be looked at.
    values: Vec<(String, bool)>,
}

/// What is shown in large.
struct Tile {
    name: &'static str,
    about: &'static str,
    value: String,
    is_alarming: bool,
}

/// The figures of a resource as a row.
struct FiguresView<'a> {
    resource: &'a str,
    algorithm: &'a str,
    /// Where its charts are; empty if there are none.
    anchor: String,
    /// Each, and whether it should be looked at.
    values: Vec<(String, bool)>,
}

impl FiguresView<'_> {
    /// Each with its name, which stands beside it where there is no room for a header.
    fn named_values(&self) -> impl Iterator<Item = (&str, bool, &'static str)> {
        let values = self.values.iter().zip(FIGURES);
        values.map(|((value, over), figure)| (value.as_str(), *over, figure.name))
    }
}

/// What happened as a row.
struct MarkView<'a> {
    at_s: f64,
    at: String,
    lasts: String,
    kind: &'static str,
    /// How it looks: as a warning, as good news, or as neither.
    tone: &'static str,
    text: &'a str,
}

/// The page.
pub(super) fn page(recording: &Recording, slugs: &[String]) -> Result<String, askama::Error> {
    let headline = Headline::of(recording);
    let resources = recording.resources.iter().zip(slugs);
    let sections = resources.clone().take(RESOURCES_MAX);
    let mut sorted: Vec<&Verdict> = recording.verdicts.iter().collect();
    sorted.sort_by_key(|verdict| (!verdict.is_broken(), verdict.limit.is_none()));
    let is_judged = |verdict: &&&Verdict| verdict.limit.is_some();
    let judged = sorted.iter().take_while(is_judged).count();
    let (judged, unjudged) = sorted.split_at(judged);
    let page = ReportPage {
        recording,
        style: doorward_pages::style(),
        script: doorward_pages::script(),
        bands: bands_in_page(recording, BANDS),
        tone: match headline.outcome {
            RunOutcome::Fine => "good",
            RunOutcome::Violated => "bad",
            RunOutcome::NotJudged => "",
        },
        headline,
        facts: what(recording),
        work: work(recording),
        command: crate::report::command(recording),
        verdicts: verdict_views(judged),
        unjudged: verdict_views(unjudged),
        figures: &FIGURES,
        columns: columns(&recording.resources),
        tiles: tiles(&recording.resources),
        names_resources: recording.resources.len() > 1,
        rows: resources
            .enumerate()
            .map(|(index, (resource, slug))| FiguresView {
                resource: &resource.resource,
                algorithm: &resource.algorithm,
                anchor: match index < RESOURCES_MAX {
                    true => format!("resource-{slug}"),
                    false => String::new(),
                },
                values: section::values(&resource.figures),
            })
            .collect(),
        happened: several(recording.marks.len(), "event", "events"),
        happenings: happenings(recording, end(recording)),
        sections: sections
            .map(|(resource, slug)| SectionView::new(recording, resource, slug))
            .collect(),
        sections_left_out: recording.resources.len().saturating_sub(RESOURCES_MAX),
        marks: recording
            .marks
            .iter()
            .take(MARKS_MAX)
            .map(MarkView::new)
            .collect(),
        marks_left_out: match recording.marks.len().saturating_sub(MARKS_MAX) {
            0 => String::new(),
            more => count(more),
        },
        settled: clock(recording.settled_after_s),
        sampled: seconds(recording.sample_every_s),
    };
    page.render()
}

/// Empty if there are too many resources, or none.
fn columns(resources: &[ResourceRecording]) -> Vec<FigureView> {
    if resources.is_empty() || resources.len() > COLUMNS_MAX {
        return Vec::new();
    }
    let view = |figure: &Figure| FigureView {
        name: figure.name,
        about: figure.about,
        values: resources
            .iter()
            .map(|resource| {
                let value = (figure.get)(&resource.figures);
                (figure.unit.show(value), figure.is_alarming(value))
            })
            .collect(),
    };
    FIGURES.iter().map(view).collect()
}

fn tiles(resources: &[ResourceRecording]) -> Vec<Tile> {
    let [resource] = resources else {
        return Vec::new();
    };
    let named = |name: &&str| FIGURES.iter().find(|figure| figure.name == *name);
    let tile = |figure: &Figure| {
        let value = (figure.get)(&resource.figures);
        Tile {
            name: figure.name,
            about: figure.about,
            value: figure.unit.show(value),
            is_alarming: figure.is_alarming(value),
        }
    };
    TILES.iter().filter_map(named).map(tile).collect()
}

fn verdict_views(sorted: &[&Verdict]) -> Vec<VerdictView> {
    let mut explained: Vec<Checker> = Vec::new();
    let mut views = Vec::new();
    for verdict in sorted {
        let checker = verdict.checker;
        let about = match explained.contains(&checker) {
            true => "",
            false => verdicts::about(checker),
        };
        explained.push(checker);
        views.push(VerdictView::new(verdict, about));
    }
    views
}

impl VerdictView {
    fn new(verdict: &Verdict, about: &'static str) -> Self {
        Self {
            checker: verdict.checker.as_str(),
            about,
            resource: verdict.resource.clone(),
            found: verdicts::found(verdict),
            limit: verdicts::limit(verdict),
            judgement: match verdict.limit {
                Some(_) if !verdict.holds => "violated",
                _ => verdicts::judgement(verdict),
            },
            tone: match verdict.limit {
                None => "",
                Some(_) if verdict.holds => "good",
                Some(_) => "bad",
            },
            at_s: verdicts::worst_at(verdict),
            at: verdicts::when(verdict),
            detail: verdict.detail.clone(),
        }
    }
}

impl<'a> MarkView<'a> {
    fn new(mark: &'a Mark) -> Self {
        let lasts = mark
            .until_s
            .map(|until| seconds((until - mark.at_s).max(0.0)));
        Self {
            at_s: mark.at_s,
            at: clock(mark.at_s),
            lasts: lasts.unwrap_or_default(),
            kind: mark.kind.as_str(),
            tone: match mark.kind.nature() {
                Nature::Fault => "warn",
                Nature::Heal => "good",
                Nature::HandOver | Nature::Templates | Nature::Demand => "",
            },
            text: &mark.text,
        }
    }
}

#[cfg(test)]
mod tests;
