//! Records that a process leaves, on good and on broken disks.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs::OpenOptions;

use tempfile::TempDir;

use super::*;

const START: Time = Time::from_secs(100);

/// The record of the next process, and the most in use by what it finds.
pub(crate) fn next(dir: &TempDir, is_unused: bool) -> (Records, Option<Vec<(String, f64)>>) {
    let path = dir.path().join("assignments");
    let (records, found) = Records::open(&path, "agent", (true, is_unused), START).unwrap();
    let amounts = |marks: MarksByResource| {
        let all = marks.iter();
        all.map(|(resource, (amount, _))| (resource.to_owned(), amount.unwrap()))
            .collect()
    };
    (records, found.map(amounts))
}

/// Returns what a process would find that started now, of the first resource.
pub(crate) fn first(dir: &TempDir) -> Option<f64> {
    let copy = TempDir::new().unwrap();
    let file = "assignments";
    fs::copy(dir.path().join(file), copy.path().join(file)).unwrap();
    next(&copy, false).1.unwrap().first().map(|it| it.1)
}

/// A record that cannot be written, with a file that cannot be removed.
pub(crate) fn broken(dir: &TempDir) -> Records {
    let records = next(dir, true).0;
    let mut state = records.0.lock();
    state.file = OpenOptions::new().write(true).open("/dev/full").ok();
    state.path = dir.path().to_owned();
    drop(state);
    records
}

fn set(records: &Records, holder: &str, amounts: &[(&str, f64)]) {
    let amounts = amounts.iter().copied().collect();
    assert!(records.set("r", holder, &amounts));
}

#[track_caller]
fn check(dir: &TempDir, expected: Option<f64>) {
    let found = next(dir, false).1;
    assert_eq!(found.map(|all| all.iter().map(|it| it.1).sum()), expected);
}

#[test]
fn the_next_process_finds_what_envoys_may_use() {
    let dir = TempDir::new().unwrap();
    let records = next(&dir, true).0;
    set(&records, "a", &[("one", 10.0), ("two", 20.0)]);
    set(&records, "b", &[("one", 5.5)]);
    set(&records, "a", &[("two", 30.0)]);
    set(&records, "c", &[("gone", 1.0)]);
    set(&records, "c", &[]);
    let (records, found) = next(&dir, false);
    assert_eq!(found, Some(vec![("r".to_owned(), 35.5)]));
    let until = START + LEASE_LENGTH;
    let of_a = BTreeMap::from([("two".into(), 30.0)]);
    assert_eq!(records.take_over("r", "a", START), (of_a.clone(), until));
    let nothing = BTreeMap::new();
    let again = records.take_over("r", "a", START);
    assert_eq!(again, (nothing.clone(), until), "only once");
    // Killed before its callers have come.
    let (records, found) = next(&dir, false);
    assert_eq!(found, Some(vec![("r".to_owned(), 35.5)]));
    let too_late = records.take_over("r", "a", until);
    assert_eq!(too_late, (nothing, until));
    set(&records, "b", &[("one", 5.5)]);
    records.renew(until);
    check(&dir, Some(5.5));
}

#[test]
fn a_new_directory_says_nothing_until_all_former_leases_have_ended() {
    let dir = TempDir::new().unwrap();
    let (records, found) = next(&dir, false);
    assert_eq!(found, None);
    set(&records, "a", &[("one", 10.0)]);
    check(&dir, None);
    records.renew(START + LEASE_LENGTH);
    check(&dir, Some(10.0));
}

#[test]
fn a_file_that_may_be_wrong_does_not_count() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("assignments");
    set(&next(&dir, true).0, "a", &[("one", 10.0)]);
    let whole = fs::read_to_string(&path).unwrap();
    let boot = whole.lines().next().unwrap().rsplit(' ').next().unwrap();
    for (text, counts) in [
        (whole.clone(), true),
        // The process was killed within a write, so the assignment was not sent.
        (whole.clone() + "[[\"r\",\"b\"],{\"two\":", true),
        (whole.clone() + "\n", false),
        (whole.replace(boot, "another"), false),
        (whole.replace("agent", "other"), false),
        (whole.replace("assignments 1", "assignments 2"), false),
        (String::new(), false),
    ] {
        fs::write(&path, &text).unwrap();
        check(&dir, counts.then_some(10.0));
        assert_eq!(path.exists(), counts, "{text}");
    }
    fs::write(&path, &whole).unwrap();
    let copied = Records::open(&path, "agent", (false, false), START).unwrap();
    assert_eq!(copied.1, None);
}

#[test]
fn any_amount_of_a_resource_that_programs_lease_may_be_in_use() {
    let dir = TempDir::new().unwrap();
    let records = next(&dir, true).0;
    records.lend("r");
    set(&records, "a", &[("one", 10.0)]);
    let records = next(&dir, false).0;
    // A program asks again, and so its lease is not a former one.
    records.lend("r");
    records.renew(START + LEASE_LENGTH);
    check(&dir, Some(f64::MAX));
}

#[test]
fn a_resource_that_programs_have_stopped_to_lease_is_forgotten_after_a_whole_look() {
    let dir = TempDir::new().unwrap();
    let records = next(&dir, true).0;
    assert!(records.lend("r") && records.lend("s"));
    records.renew(START);
    assert!(records.lend("s"));
    records.renew(START);
    assert_eq!(records.0.lock().amounts.len(), 1, "s");
    records.renew(START);
    assert!(records.0.lock().amounts.is_empty());
}

#[test]
fn a_file_that_cannot_be_written_is_removed_and_begun_anew_later() {
    let dir = TempDir::new().unwrap();
    let records = next(&dir, true).0;
    records.0.lock().file = OpenOptions::new().write(true).open("/dev/full").ok();
    set(&records, "a", &[("one", 10.0)]);
    check(&dir, None);
    records.renew(START);
    check(&dir, Some(10.0));
}

#[test]
fn a_file_of_many_changes_is_written_anew() {
    let dir = TempDir::new().unwrap();
    let records = next(&dir, true).0;
    let long = "name".repeat(1_000);
    for number in 0..100 {
        set(&records, "a", &[(&long, f64::from(number))]);
    }
    records.renew(START);
    let size = fs::metadata(dir.path().join("assignments")).unwrap().len();
    assert!(size < 5_000, "{size}");
    check(&dir, Some(99.0));
}
