//! Measurements as CSV for other tools, neither thinned nor rounded.
//!
//! All files are in long form: a row for each resource, node or client at each time, so that a tool can group and
//! filter by name.

use std::io::{self, Write};

use csv::{Result, Writer, WriterBuilder};

use crate::recording::Recording;
use crate::report::figures::{WAITS, with_values};

type Csv<'a> = Writer<&'a mut dyn Write>;

/// Writes the rows of a file.
type WriteRows = fn(&mut Csv<'_>, &Recording) -> Result<()>;

/// Files with their headers. Of shortages, the largest comes first. An event without `until_s` did not last.
#[rustfmt::skip]
pub const FILES: [(&str, &str, WriteRows); 6] = [
    ("samples.csv", "resource,at_s,capacity,demand,granted,fallback,safe,used,usable,peak,unfair,holders,wanting,short",
        write_samples),
    ("nodes.csv", "resource,at_s,node,level,has,wants,granted,reserved,is_up,is_learning", write_nodes),
    ("clients.csv", "resource,at_s,client,node,wants,granted,fallback,ideal", write_clients),
    ("shortages.csv", "resource,client,node,wanted,got,ideal", write_shortages),
    ("waits.csv", "resource,wait,lost", write_waits),
    ("happened.csv", "at_s,until_s,kind,text", write_marks),
];

/// Writes a file.
pub fn write(
    out: &mut dyn Write,
    header: &str,
    write_rows: WriteRows,
    run: &Recording,
) -> io::Result<()> {
    let mut csv = WriterBuilder::new().has_headers(false).from_writer(out);
    csv.write_record(header.split(','))?;
    write_rows(&mut csv, run)?;
    csv.flush()
}

#[rustfmt::skip]
fn write_samples(csv: &mut Csv<'_>, run: &Recording) -> Result<()> {
    for of in &run.resources {
        for it in &of.samples {
            csv.serialize((
                &of.resource, it.at_s, it.capacity, it.demand, it.granted, it.fallback, it.safe, it.used, it.usable,
                it.peak, it.unfair, it.holders, it.wanting, it.short,
            ))?;
        }
    }
    Ok(())
}

fn write_nodes(csv: &mut Csv<'_>, run: &Recording) -> Result<()> {
    for of in &run.resources {
        for all in &of.samples {
            for (node, it) in run.nodes.iter().zip(&all.nodes) {
                csv.serialize((&of.resource, all.at_s, &node.name, node.level, it))?;
            }
        }
    }
    Ok(())
}

fn write_clients(csv: &mut Csv<'_>, run: &Recording) -> Result<()> {
    for of in &run.resources {
        for client in &of.clients {
            for (all, it) in of.samples.iter().zip(&client.samples) {
                csv.serialize((&of.resource, all.at_s, &client.client, &client.node, it))?;
            }
        }
    }
    Ok(())
}

fn write_shortages(csv: &mut Csv<'_>, run: &Recording) -> Result<()> {
    run.resources.iter().try_for_each(|of| {
        let mut clients = of.client_figures.iter();
        clients.try_for_each(|client| csv.serialize((&of.resource, client)))
    })
}

fn write_waits(csv: &mut Csv<'_>, run: &Recording) -> Result<()> {
    run.resources.iter().try_for_each(|of| {
        let mut waits = with_values(WAITS, of).into_iter();
        waits.try_for_each(|(wait, lost)| csv.serialize((&of.resource, wait.name, lost)))
    })
}

fn write_marks(csv: &mut Csv<'_>, run: &Recording) -> Result<()> {
    run.marks.iter().try_for_each(|mark| csv.serialize(mark))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::hostile;

    fn rows(name: &str, run: &Recording) -> Vec<csv::StringRecord> {
        let mut out = Vec::new();
        let (_, header, rows) = FILES.iter().find(|file| file.0 == name).unwrap();
        write(&mut out, header, *rows, run).unwrap();
        let mut read = csv::Reader::from_reader(out.as_slice());
        let header = read.headers().unwrap().len();
        let read: Vec<_> = read.records().map(Result::unwrap).collect();
        assert!(read.iter().all(|row| row.len() == header));
        read
    }

    #[test]
    fn every_measurement_is_a_row_and_names_are_kept() {
        let run = hostile();
        let resource = &run.resources[0];
        let samples = resource.samples.len();
        let number = |text: &str| text.parse::<f64>().unwrap();
        let read = rows("samples.csv", &run);
        assert_eq!(read.len(), samples);
        assert_eq!(read[3][0], resource.resource);
        assert_eq!(number(&read[3][1]), resource.samples[3].at_s);
        assert_eq!(number(&read[3][7]), resource.samples[3].used);
        let read = rows("nodes.csv", &run);
        assert_eq!(read.len(), samples * run.nodes.len());
        assert_eq!(read[0][2], run.nodes[0].name);
        let read = rows("clients.csv", &run);
        assert_eq!(read.len(), samples * resource.clients.len());
        assert_eq!(read[0][2], resource.clients[0].client);
        let read = rows("shortages.csv", &run);
        assert_eq!(read.len(), resource.client_figures.len());
        assert_eq!(number(&read[0][4]), resource.client_figures[0].got);
        assert_eq!(rows("waits.csv", &run).len(), WAITS.len());
        let read = rows("happened.csv", &run);
        assert_eq!(read.len(), run.marks.len());
        assert_eq!((&read[0][2], &read[0][3]), ("kill", &*run.marks[0].text));
    }

    #[test]
    fn an_empty_recording_has_headers() {
        for (_, header, rows) in FILES {
            let mut out = Vec::new();
            write(&mut out, header, rows, &Recording::default()).unwrap();
            assert_eq!(out, format!("{header}\n").into_bytes());
        }
    }
}
