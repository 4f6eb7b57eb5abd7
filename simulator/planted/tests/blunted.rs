//! Each way to blunt a checker is noticed by one of the small worlds, and none finds anything amiss otherwise.

#![allow(missing_docs, reason = "a test")]

use doorward_simulator::checker::small_worlds::SmallWorld;
use doorward_simulator::planted::{self, Blunt};

/// The small worlds that turn out wrong.
fn noticed(worlds: &[SmallWorld]) -> Vec<&str> {
    let wrong = worlds.iter().filter(|world| world.check().is_err());
    wrong.map(|world| world.about.as_str()).collect()
}

#[test]
fn small_worlds_notice_every_way_to_blunt_a_checker() {
    let worlds = SmallWorld::all().expect("all of them are understood");
    assert_eq!(noticed(&worlds), [""; 0], "with no checker blunted");
    let mut unnoticed = Vec::new();
    for blunt in Blunt::all() {
        planted::plant(Some(blunt));
        let by = noticed(&worlds);
        planted::plant(None);
        println!("{blunt:?}: {}", by.join(" | "));
        if by.is_empty() {
            unnoticed.push(blunt);
        }
    }
    assert!(unnoticed.is_empty(), "nobody notices {unnoticed:?}");
}
