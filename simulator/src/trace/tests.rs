//! Traces that are valid, and every way in which they are not.

use super::*;

fn built_in(text: &str) -> Source {
    Source::BuiltIn {
        name: "t.csv",
        text: Box::leak(text.to_owned().into_boxed_str()),
    }
}

fn trace(text: &str, speed: f64, scale: f64, repeat: u32) -> Trace {
    let source = built_in(text);
    let Scan {
        clients, length, ..
    } = scan(&source).unwrap();
    Trace {
        source,
        clients,
        length,
        speed,
        scale,
        repeat,
    }
}

fn played(trace: &Trace) -> Vec<(f64, usize, f64)> {
    let feed = TraceFeed::open(trace).unwrap();
    feed.map(|row| row.unwrap())
        .map(|row| (row.at.as_secs_f64(), row.client, row.wants))
        .collect()
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(scan(&built_in(text)).unwrap_err().to_string(), expected);
}

const SMALL: &str = "time_s,client,wants\n0,b,1\n0, a ,2.5\n\n7.5,b,0\n10,c,4\n";

#[test]
fn a_scan_tells_who_is_there_and_for_how_long() {
    let expected = Scan {
        clients: ["b", "a", "c"].map(str::to_owned).to_vec(),
        length: Duration::from_secs(10),
        rows: 4,
        wants_max: 4.0,
    };
    assert_eq!(scan(&built_in(SMALL)), Ok(expected));
    let windows = format!("\u{feff}{}", SMALL.replace('\n', "\r\n"));
    assert_eq!(scan(&built_in(&windows)).unwrap().rows, 4);
}

#[test]
fn it_is_played_faster_larger_and_again() {
    let once = [(0.0, 0, 1.0), (0.0, 1, 2.5), (7.5, 0, 0.0), (10.0, 2, 4.0)];
    assert_eq!(played(&trace(SMALL, 1.0, 1.0, 1)), once);
    let twice: Vec<_> = [0.0, 5.0]
        .iter()
        .flat_map(|start| once.map(|(at, client, wants)| (start + at / 2.0, client, wants * 10.0)))
        .collect();
    assert_eq!(played(&trace(SMALL, 2.0, 10.0, 2)), twice);
    assert_eq!(played(&trace(SMALL, 1.0, 1.0, 0)), []);
}

#[test]
fn what_takes_no_time_is_not_played_again() {
    let still = "time_s,client,wants\n0,a,1\n";
    assert_eq!(played(&trace(still, 1.0, 1.0, u32::MAX)).len(), 1);
}

#[test]
fn amounts_stay_amounts_however_they_are_scaled() {
    let large = "time_s,client,wants\n0,a,1e15\n";
    assert_eq!(played(&trace(large, 1.0, 2.0, 1)), [(0.0, 0, 1e15)]);
}

#[test]
fn a_trace_that_changed_since_it_was_scanned_is_told_and_ends() {
    let mut trace = trace(SMALL, 1.0, 1.0, 1);
    trace.clients.pop();
    let mut feed = TraceFeed::open(&trace).unwrap().skip(3);
    let error = feed.next().unwrap().unwrap_err().to_string();
    assert_eq!(
        error,
        "t.csv:6: has a client \"c\" that was not there before"
    );
    assert!(feed.next().is_none());
}

#[test]
fn a_bad_line_is_reported_with_its_number() {
    for (row, expected) in [
        ("1,a", "t.csv:3: has 2 columns; give 3: time_s,client,wants"),
        ("x,a,1", "t.csv:3: time_s is \"x\"; give a number"),
        (
            "NaN,a,1",
            "t.csv:3: time_s is NaN; give seconds from the start, from 0 up",
        ),
        (
            "-1,a,1",
            "t.csv:3: time_s is -1; give seconds from the start, from 0 up",
        ),
        (
            "1e300,a,1",
            "t.csv:3: time_s is above 1000000000; give seconds",
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
fn what_is_no_trace_is_refused() {
    let header =
        "t.csv:1: the header is \"a,b\"; a trace starts with the line \"time_s,client,wants\"";
    check("a,b\n1,2\n", header);
    check(
        "time_s,client,wants\n",
        "t.csv:1: has no rows; there is nothing to follow",
    );
    check("", &header.replace("a,b", ""));
    let missing = Source::File(PathBuf::from("not/there.csv"));
    let error = scan(&missing).unwrap_err().to_string();
    assert!(
        error.starts_with("not/there.csv: cannot be read: No such file"),
        "{error}"
    );
}

#[test]
fn a_trace_that_begins_late_begins_late_only_once() {
    let text = "time_s,client,wants\n100,a,50\n400,a,10\n";
    assert_eq!(
        played(&trace(text, 1.0, 1.0, 3)),
        [100.0, 400.0, 400.0, 700.0, 700.0, 1000.0]
            .iter()
            .zip([50.0, 10.0].iter().cycle())
            .map(|(at, wants)| (*at, 0, *wants))
            .collect::<Vec<_>>()
    );
    // One moment is not played again and again.
    let text = "time_s,client,wants\n100,a,50\n";
    assert_eq!(played(&trace(text, 1.0, 1.0, 3)), [(100.0, 0, 50.0)]);
}
