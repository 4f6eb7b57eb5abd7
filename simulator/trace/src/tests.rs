//! Tests of valid and invalid traces.

use std::fs::File;

use super::*;

const SMALL: &str = "time_s,client,wants\n0,b,1\n0, a ,2.5\n\n7.5,b,0\n10,c,4\n";

fn read(text: &str, clients_max: usize) -> Result<Trace, TraceError> {
    Trace::read("t.csv", Ok(text.as_bytes()), clients_max, 4)
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(read(text, 10).unwrap_err().to_string(), expected);
}

#[test]
fn a_trace_has_clients_and_rows() {
    let row = |(time_s, client, wants)| Row {
        time_s,
        client,
        wants,
    };
    let rows = [(0.0, 0, 1.0), (0.0, 1, 2.5), (7.5, 0, 0.0), (10.0, 2, 4.0)];
    let expected = Trace {
        clients: ["b", "a", "c"].map(str::to_owned).to_vec(),
        rows: rows.map(row).to_vec(),
    };
    assert_eq!(expected.rows[2].at(), Duration::from_millis(7_500));
    assert_eq!(read(SMALL, 3), Ok(expected));
    let windows = format!("\u{feff}{}", SMALL.replace('\n', "\r\n"));
    assert_eq!(read(&windows, 3), read(SMALL, 3));
}

#[test]
fn a_bad_line_is_reported_with_its_number() {
    for (row, expected) in [
        ("1,a", "t.csv:3: has 2 columns; give 3: time_s,client,wants"),
        ("x,a,1", "t.csv:3: time_s is \"x\"; give a number"),
        (
            "NaN,a,1",
            "t.csv:3: time_s is NaN; give seconds from the start, from 0 to 1000000000",
        ),
        (
            "-1,a,1",
            "t.csv:3: time_s is -1.0; give seconds from the start, from 0 to 1000000000",
        ),
        (
            "1e300,a,1",
            "t.csv:3: time_s is 1e300; give seconds from the start, from 0 to 1000000000",
        ),
        ("1,,1", "t.csv:3: client is empty; give it a name"),
        ("1,a,lots", "t.csv:3: wants is \"lots\"; give a number"),
        ("1,a,", "t.csv:3: wants is \"\"; give a number"),
        (
            "1,a,NaN",
            "t.csv:3: wants is not a number; give a finite number that is not negative",
        ),
        (
            "1,a,-3",
            "t.csv:3: wants is -3, which is negative; give a finite number that is not negative",
        ),
        (
            "1,a,inf",
            "t.csv:3: wants is inf, which is above the largest amount, 1000000000000000",
        ),
        (
            "9,a,1",
            "t.csv:4: time goes back from 9 to 5; sort the rows by time_s",
        ),
    ] {
        check(
            &format!("time_s,client,wants\n0,a,1\n{row}\n5,a,2\n"),
            expected,
        );
    }
}

#[test]
fn a_file_that_is_no_trace_is_refused() {
    let header =
        "t.csv:1: the header is \"a,b\"; a trace starts with the line \"time_s,client,wants\"";
    check("a,b\n1,2\n", header);
    check(
        "time_s,client,wants\n",
        "t.csv:2: has no rows; add at least one",
    );
    check("", &header.replace("a,b", ""));
    let missing = "not/there.csv";
    let error = Trace::read(missing, File::open(missing), 10, 4);
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("not/there.csv: cannot be read: No such file"),
        "{error}"
    );
}

#[test]
fn a_trace_has_only_so_many_clients_and_rows() {
    let error = read(SMALL, 2).unwrap_err().to_string();
    assert_eq!(error, "t.csv:6: has more than the allowed 2 clients");
    let error = read(&format!("{SMALL}11,c,5\n"), 3)
        .unwrap_err()
        .to_string();
    assert_eq!(error, "t.csv:7: has more than the allowed 4 rows");
}
