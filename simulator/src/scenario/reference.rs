//! The tables of fields in `docs/simulator.md`, made of what is declared.

use std::fmt::Write;

use crate::scenario::clients::ClientGroup;
use crate::scenario::declared::{FieldRow, Fields};
use crate::scenario::demand::{Demand, Diurnal, trace_rows};
use crate::scenario::fault::{ClientChoice, Event, When};
use crate::scenario::usage::{Limiter, adaptive_rows};
use crate::scenario::{ClientGaps, Limits, Scenario, Servers, network, nodes};

/// Each table: its name, and its lines of markdown.
pub fn tables() -> Vec<(&'static str, String)> {
    let mut tables = vec![("scenario", fields(&Scenario::rows()))];
    tables.extend(nodes::tables().map(|(name, rows)| (name, fields(&rows))));
    tables.push(("clients", fields(&ClientGroup::rows())));
    let mut demand = Demand::rows();
    for (key, rows) in [("diurnal", Diurnal::rows()), ("trace", trace_rows())] {
        for kind in demand.iter_mut().filter(|kind| kind.key == key) {
            kind.beside.clone_from(&rows);
        }
    }
    tables.push(("wants", kinds(&demand)));
    tables.push(("limiter", fields(&Limiter::rows())));
    tables.push(("adaptive", fields(&adaptive_rows())));
    tables.extend(network::tables().map(|(name, rows)| (name, fields(&rows))));
    tables.push(("servers", fields(&Servers::rows())));
    tables.push(("client_gaps", fields(&ClientGaps::rows())));
    tables.push(("when", kinds(&When::rows())));
    tables.push(("events", kinds(&Event::rows())));
    tables.push(("some-clients", fields(&ClientChoice::rows())));
    tables.push(("limits", fields(&Limits::rows())));
    tables
}

/// A row for each field.
fn fields(rows: &[FieldRow]) -> String {
    let mut out = "| key | value | without it | meaning |\n| --- | --- | --- | --- |\n".to_owned();
    for row in rows {
        let absent = match row.absent.as_str() {
            "" => "needed",
            absent => absent,
        };
        let mut doc = doc_of(row);
        if !row.beside.is_empty() {
            doc = format!("{doc} Besides: {}.", besides(row));
        }
        // Writing into a string does not fail.
        let _ = writeln!(out, "| `{}` | {} | {absent} | {doc} |", row.key, row.is);
    }
    out
}

/// A row for each kind, with what stands beside it.
fn kinds(rows: &[FieldRow]) -> String {
    let mut out = "| key | besides | meaning |\n| --- | --- | --- |\n".to_owned();
    for row in rows {
        let beside: Vec<String> = row.beside.iter().map(one_beside).collect();
        let (beside, doc) = (beside.join("; "), doc_of(row));
        let _ = writeln!(out, "| `{}`: {} | {beside} | {doc} |", row.key, row.is);
    }
    out
}

/// What stands beside a kind.
fn besides(row: &FieldRow) -> String {
    let beside: Vec<String> = row.beside.iter().map(one_beside).collect();
    beside.join("; ")
}

/// A field among others: `for`, a span (an election).
fn one_beside(row: &FieldRow) -> String {
    match row.absent.as_str() {
        "" => format!("`{}`, {}", row.key, row.is),
        absent => format!("`{}`, {} ({absent})", row.key, row.is),
    }
}

/// What it is for; a bar would end the cell.
fn doc_of(row: &FieldRow) -> String {
    row.doc.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// To write the tables anew, set `DOORWARD_WRITE_TABLES`.
    #[test]
    fn the_tables_of_the_reference_are_what_is_declared() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let path = root.join("../docs/simulator.md");
        let found = fs::read_to_string(&path).unwrap();
        let mut expected = found.clone();
        for (name, table) in tables() {
            let mark = format!("<!-- fields: {name} -->\n");
            let (before, rest) = expected
                .split_once(&mark)
                .unwrap_or_else(|| panic!("{mark}"));
            let rest: Vec<&str> = rest
                .lines()
                .skip_while(|line| line.starts_with('|'))
                .collect();
            expected = format!("{before}{mark}{table}{}\n", rest.join("\n"));
        }
        if std::env::var_os("DOORWARD_WRITE_TABLES").is_some() {
            fs::write(&path, &expected).unwrap();
            return;
        }
        let differs = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
        assert_eq!(differs, None, "run this test with DOORWARD_WRITE_TABLES=1");
        assert_eq!(found, expected);
    }
}
