//! Whole pages of runs, small, large and hostile.

use super::*;
use crate::recording::MarkKind;
use crate::report::folder::{slugs, write_all};
use crate::report::plausible;

fn written(recording: &Recording) -> String {
    page(recording, &slugs(recording)).unwrap()
}

/// The data of every chart can be read, and no id is given twice.
#[track_caller]
fn check(page: &str) {
    let mut ids = std::collections::BTreeSet::new();
    for id in page.split(" id=\"").skip(1) {
        let id = id.split('"').next().unwrap();
        assert!(ids.insert(id.to_owned()), "{id}");
    }
    let data = page.split("<script type=\"application/json\"").skip(1);
    for data in data {
        let data = data.split_once('>').unwrap().1;
        let data = data.split_once("</script>").unwrap().0;
        serde_json::from_str::<serde_json::Value>(data).unwrap();
    }
    for style in page.split("style=\"").skip(1) {
        let style = style.split('"').next().unwrap();
        assert!(!style.contains("NaN") && !style.contains("inf"), "{style}");
    }
}

/// To look at the page, set the variable to a folder.
#[test]
fn a_whole_report_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("DOORWARD_REPORT_FOLDER");
    let folder = kept.map_or_else(|| folder.path().to_owned(), Into::into);
    let written = write_all(&plausible::day(), &folder).unwrap();
    let page = std::fs::read_to_string(&written.page).unwrap();
    assert!(page.contains("1 of 12 limits is violated."));
    assert!(page.contains("doorward-sim run three-levels --seed 20260412"));
    // It needs nothing from elsewhere.
    for outside in ["src=", "href=\"http", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    check(&page);
}

#[test]
fn names_are_never_markup() {
    let evil = "</svg></script><script>alert(1)</script>&\"'\u{0}";
    let mut recording = plausible::small();
    recording.scenario = evil.to_owned();
    recording.description = evil.to_owned();
    recording.trace_hash = evil.to_owned();
    recording.nodes[0].name = evil.to_owned();
    let mut child = recording.nodes[0].clone();
    (child.level, child.parent) = (1, Some(0));
    recording.nodes.push(child);
    recording.marks[0].text = evil.to_owned();
    for verdict in &mut recording.verdicts {
        verdict.resource = evil.to_owned();
        verdict.detail = evil.to_owned();
    }
    let resource = &mut recording.resources[0];
    resource.resource = evil.to_owned();
    resource.algorithm = evil.to_owned();
    for client in &mut resource.clients {
        client.client = evil.to_owned();
        client.node = evil.to_owned();
    }
    let page = written(&recording);
    assert!(!page.contains("alert(1)</script>") && !page.contains("<script>alert"));
    check(&page);
}

#[test]
fn a_run_of_almost_nothing_has_a_page() {
    check(&written(&Recording::default()));
    for samples in [0, 1, 2] {
        let mut recording = plausible::small();
        let resource = &mut recording.resources[0];
        resource.samples.truncate(samples);
        resource.clients.truncate(1);
        for sample in &mut resource.samples {
            (sample.capacity, sample.usable, sample.demand) = (0.0, 0.0, 0.0);
        }
        recording.marks.clear();
        recording.duration_s = 0.0;
        let page = written(&recording);
        assert!(page.contains("Nothing went wrong"));
        check(&page);
    }
}

#[test]
fn thousands_of_marks_do_not_swell_the_page() {
    let mut recording = plausible::small();
    let quiet = written(&recording).len();
    for number in 0..20_000 {
        let mut mark = recording.marks[0].clone();
        mark.at_s = f64::from(number) * 60.0 / 20_000.0;
        mark.until_s = (number % 2 == 0).then_some(mark.at_s + 0.01);
        mark.kind = [MarkKind::Kill, MarkKind::Demand][number as usize % 2];
        recording.marks.push(mark);
    }
    let page = written(&recording);
    assert!(page.contains("19,701 more are in"), "{}", page.len());
    assert!(page.len() < quiet + 300_000, "{} after {quiet}", page.len());
    check(&page);
}
