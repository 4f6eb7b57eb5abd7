//! Programs that ship have no bug that can be switched on.

use std::io::BufRead;

use doorward_tests::processes::program;

/// Marks of programs that are built with the feature `planted` of a crate: `doorward_session::session_bugs::MARK` and
/// `doorward_engine::planted::MARK`, in two parts, so that they are in no other program.
const MARKS: [[&str; 2]; 2] = [
    ["doorward-session was built with", " the feature planted"],
    ["doorward-engine was built with", " the feature planted"],
];

/// Searches for the first byte only, because a comparison at each place takes long in a program of a hundred megabytes.
fn contains(bytes: &[u8], text: &str) -> bool {
    let (&first, rest) = text.as_bytes().split_first().unwrap();
    let mut after = bytes;
    while after.skip_until(first).unwrap() > 0 {
        if after.starts_with(rest) {
            return true;
        }
    }
    false
}

#[test]
fn what_a_program_contains_is_found() {
    assert!(contains(b"a mark is in dodoorward", "doorward"));
    assert!(contains(b"doorward", "doorward"));
    assert!(!contains(b"doorwar", "doorward"));
    assert!(!contains(b"", "doorward"));
}

#[test]
fn no_program_that_ships_is_built_with_planted_bugs() {
    let marks = MARKS.map(|mark| mark.concat());
    let server = program("doorward-server");
    // In a test of the whole workspace, it is there, too.
    let simulator = server.with_file_name(format!("doorward-sim{}", std::env::consts::EXE_SUFFIX));
    let simulator = simulator.exists().then_some(simulator);
    for program in [server, program("doorward")].into_iter().chain(simulator) {
        let bytes = std::fs::read(&program).unwrap();
        for mark in &marks {
            assert!(!contains(&bytes, mark), "{}: {mark}", program.display());
        }
    }
}
