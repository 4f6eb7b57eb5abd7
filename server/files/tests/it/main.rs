//! Values from files that are read again when they change.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use doorward_files::{Reloading, read_to_string};

/// Returns a number from a file. `gate`: each later read waits for a word.
fn numbers(path: &Path, gate: Option<(Sender<()>, Receiver<()>)>) -> Reloading<u32> {
    let (gate, file) = (gate.map(Mutex::new), path.to_owned());
    let read = move |former: Option<&u32>| {
        if let (Some(_), Some(gate)) = (former, &gate) {
            let gate = gate.lock().unwrap();
            gate.0.send(()).unwrap();
            gate.1.recv().unwrap();
        }
        let text = read_to_string(&file)?;
        text.trim().parse().map_err(io::Error::other)
    };
    Reloading::open("numbers", vec![PathBuf::from(path)], read).unwrap()
}

/// Replaces a file as a whole.
fn put(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, path).unwrap();
}

#[test]
fn a_changed_file_is_read_again_and_the_last_valid_value_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("number");
    put(&path, "1");
    let value = numbers(&path, None);
    assert_eq!(value.refresh(), Ok(false));
    put(&path, "2");
    assert_eq!(value.refresh(), Ok(true));
    for text in ["two", "a number"] {
        put(&path, text);
        let problem = "invalid digit found in string".to_owned();
        // It is told once.
        let is_first = text == "two";
        let expected = if is_first {
            Err(problem.clone())
        } else {
            Ok(false)
        };
        assert_eq!(value.refresh(), expected, "{text}");
        assert_eq!((*value.current(), value.problem()), (2, Some(problem)));
    }
    put(&path, "3");
    assert_eq!(value.refresh(), Ok(true));
    assert_eq!((*value.current(), value.problem()), (3, None));
}

#[test]
fn nothing_waits_for_a_file_that_hangs_but_the_one_that_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("number");
    put(&path, "1");
    let (begins, begun) = channel();
    let (go_on, word) = channel();
    let value = Arc::new(numbers(&path, Some((begins, word))));
    put(&path, "2");
    let reading = Arc::clone(&value);
    let reading = thread::spawn(move || reading.refresh());
    begun.recv().unwrap();
    // It hangs.
    assert_eq!(value.refresh(), Ok(false));
    assert_eq!((*value.current(), value.problem()), (1, None));
    go_on.send(()).unwrap();
    assert_eq!(reading.join().unwrap(), Ok(true));
    assert_eq!(*value.current(), 2);
}
