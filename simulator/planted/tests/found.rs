//! Each planted bug is found, and nothing is found where none is planted.

#![allow(missing_docs, reason = "a test")]

use doorward_planted::{AnyBug, FOUND, SEEDS_MAX, find};
use doorward_simulator::fuzz;

#[test]
fn worlds_by_chance_find_every_planted_bug_and_nothing_without_it() {
    assert!(FOUND.len() >= 10, "{}", FOUND.len());
    for planted in FOUND {
        let found = find(*planted, SEEDS_MAX);
        let (seed, how) = found.unwrap_or_else(|| panic!("nobody sees {:?}", planted.bug));
        println!("{:?}: {seed}: {how}", planted.bug);
        AnyBug::plant(None);
        let (_, failure) = fuzz::play(&fuzz::scenario(seed, planted.focus));
        assert_eq!(failure, None, "seed {seed}, without {:?}", planted.bug);
    }
}

#[test]
fn what_worlds_are_to_find_of_the_engine_they_are_asked_for() {
    let engine = FOUND.iter().filter_map(|planted| match planted.bug {
        AnyBug::Engine(bug) => Some(bug),
        AnyBug::Session(_) => None,
    });
    assert_eq!(
        engine.collect::<Vec<_>>(),
        doorward_engine::planted::Bug::BY_WORLDS
    );
}

#[test]
fn a_program_that_is_built_with_planted_bugs_shows_it() {
    let program = std::env::current_exe().and_then(std::fs::read);
    let program = program.expect("this program can be read");
    for mark in [
        doorward_session::session_bugs::MARK,
        doorward_engine::planted::MARK,
    ] {
        let mark = mark.as_bytes();
        let is_there = program.windows(mark.len()).any(|bytes| bytes == mark);
        assert!(is_there, "then those that ship can be distinguished");
    }
}
