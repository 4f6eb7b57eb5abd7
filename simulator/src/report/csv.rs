//! Measurements as CSV for other tools, neither thinned nor rounded.
//!
//! Each sample is a row. Nodes and clients are in long form, a row for each of them at each time, so that a tool can
//! group and filter them by name.

use std::io::{self, Write};

use csv::Writer;

use crate::recording::{Mark, NodeInfo, ResourceRecording};
use crate::report::figures::WAITS;

/// Writes the sums over all clients, a row a sample.
#[rustfmt::skip]
pub fn write_samples(out: impl Write, resource: &ResourceRecording) -> io::Result<()> {
    let header = "at_s,capacity,demand,granted,fallback,safe,used,usable,peak,unfair,holders,wanting,short";
    let rows = resource.samples.iter().map(|it| row(&[
        &it.at_s, &it.capacity, &it.demand, &it.granted, &it.fallback, &it.safe, &it.used, &it.usable, &it.peak,
        &it.unfair, &it.holders, &it.wanting, &it.short,
    ]));
    write_rows(out, header, rows)
}

/// Writes every node at every time.
#[rustfmt::skip]
pub fn write_nodes(out: impl Write, resource: &ResourceRecording, nodes: &[NodeInfo]) -> io::Result<()> {
    let header = "at_s,node,level,has,wants,granted,reserved,is_up,is_learning";
    let rows = resource.samples.iter().flat_map(|all| {
        nodes.iter().zip(&all.nodes).map(|(node, it)| row(&[
            &all.at_s, &node.name, &node.level, &it.has, &it.wants, &it.granted, &it.reserved, &it.is_up,
            &it.is_learning,
        ]))
    });
    write_rows(out, header, rows)
}

/// Writes the clients that are recorded over time, at every time.
#[rustfmt::skip]
pub fn write_clients(out: impl Write, resource: &ResourceRecording) -> io::Result<()> {
    let rows = resource.clients.iter().flat_map(|client| {
        let samples = resource.samples.iter().zip(&client.samples);
        samples.map(|(all, it)| row(&[
            &all.at_s, &client.client, &client.node, &it.wants, &it.granted, &it.fallback, &it.ideal,
        ]))
    });
    write_rows(out, "at_s,client,node,wants,granted,fallback,ideal", rows)
}

/// Writes the means of single clients, the largest shortage first.
pub fn write_client_figures(out: impl Write, resource: &ResourceRecording) -> io::Result<()> {
    let clients = resource.client_figures.iter();
    let rows = clients.map(|it| {
        row(&[
            &it.client, &it.node, &it.wanted, &it.got, &it.ideal, &it.short,
        ])
    });
    write_rows(out, "client,node,wanted,got,ideal,short", rows)
}

/// Writes all losses of utilisation, as parts of the usable amount.
pub fn write_waits(out: impl Write, resource: &ResourceRecording) -> io::Result<()> {
    let figures = serde_json::to_value(&resource.figures).unwrap_or_default();
    let rows = WAITS
        .iter()
        .map(|wait| row(&[&wait.name, &wait.of(&figures)]));
    write_rows(out, "wait,lost", rows)
}

/// Writes the events from outside. An empty `until_s`: the event did not last.
pub fn write_marks(out: impl Write, marks: &[Mark]) -> io::Result<()> {
    let rows = marks.iter().map(|mark| {
        let until = mark
            .until_s
            .map_or_else(String::new, |until| until.to_string());
        row(&[&mark.at_s, &until, &mark.kind.as_str(), &mark.text])
    });
    write_rows(out, "at_s,until_s,kind,text", rows)
}

fn row(cells: &[&dyn ToString]) -> Vec<String> {
    cells.iter().map(|cell| cell.to_string()).collect()
}

fn write_rows(
    out: impl Write,
    header: &str,
    rows: impl Iterator<Item = Vec<String>>,
) -> io::Result<()> {
    let mut csv = Writer::from_writer(out);
    csv.write_record(header.split(','))?;
    for row in rows {
        csv.write_record(row)?;
    }
    csv.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::hostile;

    #[track_caller]
    fn check(
        write: impl Fn(&mut Vec<u8>) -> io::Result<()>,
        rows: usize,
    ) -> Vec<csv::StringRecord> {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        let mut read = csv::Reader::from_reader(out.as_slice());
        let header = read.headers().unwrap().len();
        let read: Vec<_> = read.records().map(Result::unwrap).collect();
        assert_eq!(read.len(), rows);
        assert!(read.iter().all(|row| row.len() == header));
        read
    }

    #[test]
    fn every_measurement_is_a_row_and_names_are_kept() {
        let run = hostile();
        let resource = &run.resources[0];
        let samples = resource.samples.len();
        let rows = check(|out| write_samples(out, resource), samples);
        assert_eq!(rows[3][0], resource.samples[3].at_s.to_string());
        assert_eq!(rows[3][6], resource.samples[3].used.to_string());
        let rows = check(
            |out| write_nodes(out, resource, &run.nodes),
            samples * run.nodes.len(),
        );
        assert_eq!(rows[0][1], *run.nodes[0].name);
        let rows = check(
            |out| write_clients(out, resource),
            samples * resource.clients.len(),
        );
        assert_eq!(rows[0][1], *resource.clients[0].client);
        let rows = check(
            |out| write_client_figures(out, resource),
            resource.client_figures.len(),
        );
        assert_eq!(rows[0][3], resource.client_figures[0].got.to_string());
        check(|out| write_waits(out, resource), WAITS.len());
        let rows = check(|out| write_marks(out, &run.marks), run.marks.len());
        assert_eq!((&rows[0][2], &rows[0][3]), ("kill", &*run.marks[0].text));
    }

    #[test]
    fn an_empty_recording_has_headers() {
        let mut out = Vec::new();
        write_clients(&mut out, &ResourceRecording::default()).unwrap();
        assert_eq!(out, b"at_s,client,node,wants,granted,fallback,ideal\n");
    }
}
