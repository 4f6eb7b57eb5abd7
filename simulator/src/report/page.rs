//! The report page: one file with style, script and recordings, which needs no network.
//!
//! `report-page/report.js` draws everything. Without recordings the page asks for recording.json files.

use std::io::{self, Write};

use doorward_pages::{BASE, PALETTE, UPLOT, UPLOT_LICENSE, UPLOT_STYLE};
use serde::Serialize;

use crate::recording::Recording;
use crate::report::figures;
use crate::report::words::WithWords;

const TEMPLATE: &str = include_str!("../../report-page/report.html");
const STYLE: &str = include_str!("../../report-page/report.css");
const SCRIPT: &str = include_str!("../../report-page/report.js");

/// Writes the page with a recording.
pub fn write(out: &mut dyn Write, recording: &Recording) -> io::Result<()> {
    // The template has a line `{{name}}` for each part.
    for line in TEMPLATE.lines() {
        match line.trim() {
            "{{style}}" => {
                writeln!(out, "{PALETTE}{BASE}{UPLOT_STYLE}\n{STYLE}")?;
            }
            "{{vocabulary}}" => write_script(out, &figures::vocabulary())?,
            "{{recordings}}" => write_script(out, &[WithWords::of(recording)])?,
            "{{uplot}}" => {
                let license = UPLOT_LICENSE.trim();
                writeln!(out, "/*! uPlot\n{license}\n*/\n{UPLOT}")?;
            }
            "{{script}}" => writeln!(out, "{SCRIPT}")?,
            _ => writeln!(out, "{line}")?,
        }
    }
    Ok(())
}

/// Writes a value for a `<script>` element: without `<`, no text in it ends the element.
fn write_script(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let json = serde_json::to_string(value)?;
    writeln!(out, "{}", json.replace('<', "\\u003c"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::{hostile, played};

    fn page(recording: &Recording) -> String {
        let mut out = Vec::new();
        write(&mut out, recording).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Returns the recordings that are embedded in a page.
    fn embedded(page: &str) -> serde_json::Value {
        let data = page.split_once("id=\"recordings\">").unwrap().1;
        serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
    }

    #[test]
    fn the_page_holds_its_recording_and_needs_no_network() {
        let run = played();
        let page = page(&run);
        let data = embedded(&page);
        assert_eq!(data[0]["words"]["headline"], "All 2 limits hold.");
        let read: Recording = serde_json::from_value(data[0].clone()).unwrap();
        assert_eq!(read, *run);
        for outside in ["src=", "href=\"http", "@import", "url(", "fetch(", "{{"] {
            let count = page.matches(outside).count();
            assert_eq!(count, 0, "{outside}");
        }
        assert!(page.contains("Permission is hereby granted"));
    }

    #[test]
    fn hostile_names_end_no_script_and_stay_as_they_are() {
        let run = hostile();
        let page = page(&run);
        let empty = super::tests::page(&Recording::default());
        assert_eq!(
            page.matches("</script").count(),
            empty.matches("</script").count()
        );
        assert_eq!(page.matches("<!--").count(), empty.matches("<!--").count());
        let data = embedded(&page);
        assert_eq!(data[0]["scenario"], run.scenario.as_str());
    }
}
