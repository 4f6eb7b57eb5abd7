//! Each planted bug is found, and nothing is found where none is planted.

#![allow(missing_docs, reason = "a test")]

use doorward_planted::{FOUND, SEEDS_MAX, find};
use doorward_session::planted;
use doorward_simulator::fuzz;

#[test]
fn worlds_by_chance_find_every_planted_bug_and_nothing_without_it() {
    assert!(FOUND.len() >= 10, "{}", FOUND.len());
    for planted in FOUND {
        let found = find(*planted, SEEDS_MAX);
        let (seed, how) = found.unwrap_or_else(|| panic!("nobody sees {:?}", planted.bug));
        println!("{:?}: {seed}: {how}", planted.bug);
        planted::plant(None);
        let (_, failure) = fuzz::play(&fuzz::scenario(seed, planted.focus));
        assert_eq!(failure, None, "seed {seed}, without {:?}", planted.bug);
    }
}

#[test]
fn a_program_that_is_built_with_planted_bugs_shows_it() {
    let program = std::env::current_exe().and_then(std::fs::read);
    let program = program.expect("this program can be read");
    let mark = planted::MARK.as_bytes();
    let is_there = program.windows(mark.len()).any(|bytes| bytes == mark);
    assert!(is_there, "then those that ship can be told apart");
}
