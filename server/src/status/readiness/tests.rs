//! Readiness of a server over time.

use super::*;

const TTL: Duration = Duration::from_secs(10);

fn master() -> Mastership {
    Mastership::Master { epoch: Some(1) }
}

fn follower() -> Mastership {
    Mastership::Elsewhere {
        master_address: "there:1".to_owned(),
        epoch: Some(1),
    }
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

fn root(mastership: Mastership) -> Facts {
    Facts {
        mastership,
        ..Facts::default()
    }
}

fn below(mastership: Mastership, answered: bool) -> Facts {
    Facts {
        parent_answered: Some(answered),
        ..root(mastership)
    }
}

#[track_caller]
fn check(state: &mut ReadyState, facts: &Facts, second: u64, ready: bool) {
    let judged = state.judge(facts, at(second));
    assert_eq!(judged.is_ok(), ready, "at {second} s: {judged:?}");
}

#[test]
fn a_server_that_is_its_own_ancestor_is_not_ready_whoever_answered() {
    let master = Mastership::Master { epoch: None };
    let facts = Facts {
        is_in_cycle: true,
        ..below(master, true)
    };
    let mut state = ReadyState::new(Duration::ZERO);
    check(&mut state, &facts, 1, false);
    let Err(why) = state.judge(&facts, at(1)) else {
        panic!("it is not");
    };
    assert!(why.contains("its own ancestor"), "{why}");
}

#[test]
fn a_server_is_ready_when_it_knows_a_master_and_as_the_master_its_parent_has_answered() {
    for (facts, ready) in [
        (root(Mastership::Unknown), false),
        (root(master()), true),
        (root(follower()), true),
        (below(Mastership::Unknown, true), false),
        (below(master(), false), false),
        (below(master(), true), true),
        (below(follower(), false), true),
    ] {
        let mut state = ReadyState::new(2 * TTL);
        assert_eq!(state.judge(&facts, at(0)).is_ok(), ready, "{facts:?}");
    }
}

#[test]
fn an_election_that_lasts_less_than_two_ttls_leaves_it_ready() {
    let mut state = ReadyState::new(2 * TTL);
    check(&mut state, &root(Mastership::Unknown), 0, false);
    check(&mut state, &root(follower()), 5, true);
    check(&mut state, &root(Mastership::Unknown), 100, true);
    assert_eq!(state.ends_at(), Some(at(120)));
    check(&mut state, &root(Mastership::Unknown), 119, true);
    check(&mut state, &root(master()), 119, true);
    assert_eq!(state.ends_at(), None);
    // The next outage counts from its own beginning.
    check(&mut state, &root(Mastership::Unknown), 130, true);
    check(&mut state, &root(Mastership::Unknown), 149, true);
    check(&mut state, &root(Mastership::Unknown), 150, false);
    check(&mut state, &root(follower()), 151, true);
}

#[test]
fn a_new_master_has_as_long_to_hear_of_its_parent() {
    let mut state = ReadyState::new(2 * TTL);
    check(&mut state, &below(follower(), false), 0, true);
    check(&mut state, &below(Mastership::Unknown, false), 10, true);
    check(&mut state, &below(master(), false), 15, true);
    check(&mut state, &below(master(), false), 30, false);
    check(&mut state, &below(master(), true), 31, true);
}

#[test]
fn without_an_election_nothing_is_waited_for() {
    let mut state = ReadyState::new(Duration::ZERO);
    check(&mut state, &root(master()), 0, true);
    check(&mut state, &root(Mastership::Unknown), 0, false);
}

#[test]
fn it_says_what_is_missing_and_why() {
    let text_of = |text: &str| Some(text.to_owned());
    let problems = Facts {
        parent_problem: text_of("refused"),
        etcd_problem: text_of("etcd is away"),
        templates_problem: text_of("there are none"),
        ..below(master(), false)
    };
    assert_eq!(
        problems.missing(),
        text_of("the parent has not answered since this server started; refused")
    );
    let unknown = Facts {
        mastership: Mastership::Unknown,
        ..problems
    };
    assert_eq!(
        unknown.missing(),
        text_of("no master of this node is known; etcd is away; there are none")
    );
}
