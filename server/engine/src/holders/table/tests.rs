//! Holders are found under their names and by nothing else, sums and expiries follow them, and what they
//! take is known.

use super::places::{CHUNK, SCANNED_MAX};
use super::*;
use crate::amount::Amount;
use crate::claims::Claim;
use crate::division::{Bound, DecidedBy, KnownWhy};
use crate::holders::Lease;
use crate::id::{HolderName, Incarnation};

fn at(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

fn lease(capacity: f64, until: u64) -> Lease {
    Lease {
        capacity: Amount::new(capacity).unwrap(),
        expires_at: at(until),
    }
}

/// A client that does not say which process it is.
fn client(name: &str) -> HolderId {
    process(name, 0)
}

fn process(name: &str, number: u64) -> HolderId {
    let name = HolderName::new(name).unwrap();
    HolderId::client(name, Incarnation::new(number))
}

fn server(name: &str) -> HolderId {
    HolderId::server(HolderName::new(name).unwrap())
}

fn holding(name: &str, capacity: f64, until: u64) -> Holding {
    holding_of(client(name), capacity, until)
}

fn holding_of(holder: HolderId, capacity: f64, until: u64) -> Holding {
    let demand = Demand::Client {
        priority: 0,
        claim: Claim::of_client(Amount::new(capacity).unwrap()),
    };
    let why = KnownWhy {
        decided_by: DecidedBy::Division,
        bound: Bound::Share,
    };
    let leases = Leases::new(lease(capacity, until));
    Holding::new(holder, demand, leases, why, Time::ZERO)
}

/// A table of few holders, which are looked through, and one of many, which has indexes. Their first
/// holders have nothing, and stay.
fn tables() -> [LeaseTable; 2] {
    let few = LeaseTable::new(7);
    let mut many = LeaseTable::new(7);
    for other in 0..=SCANNED_MAX {
        many.insert(holding(&format!("other {other}"), 0.0, 100_000));
    }
    [few, many]
}

fn name(table: &LeaseTable, slot: Option<Slot>) -> Option<&str> {
    Some(table.get(slot?)?.name.as_str())
}

#[test]
fn each_of_many_holders_is_found_under_its_name_until_it_is_taken_out() {
    let mut table = LeaseTable::new(7);
    let names: Vec<_> = (0..2 * CHUNK + 10).map(|n| format!("holder {n}")).collect();
    for it in &names {
        table.insert(holding(it, 1.0, 60));
    }
    for (number, it) in names.iter().enumerate() {
        let found = table.find(&client(it));
        assert_eq!(name(&table, found), Some(it.as_str()));
        assert_eq!(table.find(&server(it)), None);
        if number % 2 == 0 {
            table.remove(found.unwrap()).unwrap();
        }
    }
    for (number, it) in names.iter().enumerate() {
        let found = table.find(&client(it));
        let expected = (number % 2 == 1).then_some(it.as_str());
        assert_eq!(name(&table, found), expected);
    }
    table.assert_consistent();
}

#[test]
fn two_names_of_one_hash_are_two_holders() {
    let mut table = LeaseTable::new(0);
    let hash = |name: &str| table.hash.of_name(&client(name));
    // Of 2^32 hashes: among so many names, two have the same one.
    let mut names = std::collections::BTreeMap::new();
    let pair = (0..400_000).find_map(|n| {
        let name = format!("holder {n}");
        let other = names.insert(hash(&name), name.clone())?;
        Some((other, name))
    });
    let pair = pair.unwrap();
    let (one, other) = (pair.0.as_str(), pair.1.as_str());
    for n in 0..=SCANNED_MAX {
        table.insert(holding(&format!("holder {n}"), 1.0, 60));
    }
    table.insert(holding(one, 1.0, 60));
    assert_eq!(table.find(&client(other)), None);
    table.insert(holding(other, 1.0, 60));
    for it in [one, other] {
        let found = table.find(&client(it));
        assert_eq!(name(&table, found), Some(it));
    }
    let found = table.find(&client(one)).unwrap();
    table.remove(found).unwrap();
    assert_eq!(table.find(&client(one)), None);
    let found = table.find(&client(other));
    assert_eq!(name(&table, found), Some(other));
}

#[test]
fn processes_of_one_name_are_found_each_and_the_newest_by_the_name() {
    for mut table in tables() {
        let found = |table: &LeaseTable, holder: &HolderId| {
            let slot = table.find(holder)?;
            table.get(slot).map(Holding::holder)
        };
        let newest = |table: &LeaseTable| table.newest_of_name(&client("a"));
        for number in 0..3 {
            assert_eq!(table.find(&process("a", number)), None);
            if let Some(before) = newest(&table) {
                table.change_standing(before, Standing::Replaced);
                table.change_leases(before, |leases| leases.grant(lease(1.0, 30)));
            }
            let slot = table.insert(holding_of(process("a", number), 1.0, 60));
            assert_eq!(newest(&table), Some(slot));
            table.assert_consistent();
        }
        for number in 0..3 {
            let holder = process("a", number);
            assert_eq!(found(&table, &holder), Some(holder));
        }
        table.remove(newest(&table).unwrap()).unwrap();
        assert_eq!(newest(&table), None, "both were replaced");
        assert_eq!(table.find(&process("a", 2)), None);
        for number in 0..2 {
            let slot = table.find(&process("a", number)).unwrap();
            table.remove(slot).unwrap();
            assert_eq!(table.find(&process("a", number)), None);
        }
        table.assert_consistent();
    }
}

#[test]
fn one_that_was_replaced_is_silent_when_it_should_have_asked_and_then_ends() {
    for asks in [false, true] {
        for mut table in tables() {
            let slot = table.insert(holding_of(process("a", 1), 10.0, 60));
            table.change_standing(slot, Standing::Replaced);
            table.change_leases(slot, |leases| leases.grant(lease(10.0, 25)));
            assert_eq!(table.next_expiry(), Some(at(25)));
            assert!(matches!(table.expire_one(at(24)), Expired::NothingDue));
            if asks {
                table.change_leases(slot, |leases| leases.grant(lease(10.0, 60)));
                assert!(matches!(table.expire_one(at(25)), Expired::Nobody));
            } else {
                assert!(matches!(table.expire_one(at(25)), Expired::Silent(it) if it == slot));
            }
            let left = table.get(slot).unwrap();
            assert_eq!(left.reserved(), Amount::new(10.0).unwrap());
            assert_eq!(left.newest().capacity.is_zero(), !asks);
            table.assert_consistent();
            assert!(matches!(table.expire_one(at(59)), Expired::NothingDue));
            assert!(matches!(table.expire_one(at(60)), Expired::Holder(..)));
            assert_eq!(table.find(&process("a", 1)), None);
        }
    }
}

#[test]
fn names_are_spread_and_those_of_clients_and_servers_told_apart() {
    let table = LeaseTable::new(7);
    let names: Vec<_> = (0..1_000).map(|n| format!("holder {n}")).collect();
    let hash = |name: &String| table.hash.of_name(&client(name));
    let hashes: std::collections::BTreeSet<_> = names.iter().map(hash).collect();
    assert_eq!(hashes.len(), names.len());
    assert_ne!(table.name_hash(&client("a")), table.name_hash(&server("a")));
    let (one, other) = (process("a", 1), process("a", 2));
    assert_ne!(table.name_hash(&one), table.name_hash(&other));
}

#[test]
fn few_holders_and_many_are_found_scheduled_and_taken_out_alike() {
    let mut table = LeaseTable::new(7);
    let mut there: Vec<String> = Vec::new();
    // From none to many and back to none, twice.
    for step in 0..2 {
        for n in 0..3 * SCANNED_MAX {
            let name = format!("holder {n}");
            table.insert(holding(&name, 1.0, 60 - n as u64));
            there.push(name);
            assert_eq!(table.next_expiry(), Some(at(60 - n as u64)));
            table.assert_consistent();
        }
        while let Some(name) = there.pop() {
            let slot = table.find(&client(&name)).unwrap();
            assert_eq!(table.find(&server(&name)), None);
            if step == 0 {
                table.remove(slot).unwrap();
            } else {
                let end = table.get(slot).unwrap().leases().last_expiry();
                let is_over =
                    |expired| matches!(expired, Expired::Holder(_, it) if it.name.as_str() == name);
                assert!(is_over(table.expire_one(end)), "{name}");
            }
            assert_eq!(table.find(&client(&name)), None);
            assert_eq!(table.len(), there.len());
            table.assert_consistent();
        }
        assert_eq!(table.next_expiry(), None);
    }
}

#[test]
fn entries_of_former_holders_do_not_pile_up() {
    for mut table in tables() {
        table.insert(holding("stays", 1.0, 60));
        // The same place again and again: with leases that end together, or each at another time.
        for lengths in [1, 3, 4_000] {
            for round in 0..4_000_u64 {
                let slot = table.insert(holding("comes and goes", 1.0, 70 + round % lengths));
                table.remove(slot).unwrap();
            }
        }
        table.insert(holding("is the last", 1.0, 70));
        let mut gone = Vec::new();
        for second in [59, 60, 69, 70] {
            loop {
                match table.expire_one(at(second)) {
                    Expired::NothingDue => break,
                    Expired::Holder(_, it) => gone.push((second, it.name.to_string())),
                    Expired::Nobody | Expired::Part | Expired::Silent(_) => {}
                }
            }
        }
        let expected = [(60, "stays".to_owned()), (70, "is the last".to_owned())];
        assert_eq!(gone, expected);
    }
}

#[test]
fn a_lease_that_is_renewed_is_no_news_and_one_that_shrank_is() {
    for mut table in tables() {
        let slot = table.insert(holding("a", 100.0, 20));
        for until in [20, 20, 20, 30, 60] {
            table.change_leases(slot, |leases| leases.grant(lease(100.0, until)));
            table.assert_consistent();
        }
        assert!(matches!(table.expire_one(at(20)), Expired::Nobody));
        assert!(matches!(table.expire_one(at(20)), Expired::NothingDue));
        table.change_leases(slot, |leases| leases.grant(lease(40.0, 70)));
        assert!(matches!(table.expire_one(at(60)), Expired::Part));
        assert!(matches!(table.expire_one(at(70)), Expired::Holder(..)));
        table.assert_consistent();
    }
}

#[test]
fn something_is_in_use_until_the_longest_lease_of_those_that_hold_anything() {
    let mut table = LeaseTable::new(7);
    assert_eq!(table.in_use_until(at(0)), None);
    let slot = table.insert(holding("a", 100.0, 60));
    assert_eq!(table.in_use_until(at(59)), Some(at(60)));
    assert_eq!(table.in_use_until(at(60)), None);
    table.change_leases(slot, |leases| leases.acknowledge(Amount::ZERO));
    assert_eq!(table.in_use_until(at(10)), None, "it has nothing");
    table.remove(slot).unwrap();
    table.insert(holding("b", 100.0, 30));
    assert_eq!(table.in_use_until(at(10)), Some(at(30)));
}

#[test]
fn only_an_invited_holder_may_come_a_little_early() {
    for (invited, now, expected) in [
        (true, 114, false),
        (true, 115, true),
        (true, 116, true),
        (true, 130, true),
        (false, 115, false),
        (false, 130, false),
    ] {
        let mut it = holding("a", 1.0, 60);
        (it.decided_at, it.refresh_at, it.invited) = (at(100), at(116), invited);
        assert_eq!(it.is_invited(at(now)), expected, "{invited} at {now} s");
    }
}

#[test]
fn a_holder_in_the_place_of_a_former_one_is_looked_at_in_time() {
    for (came, stay, newcomers) in [(5_000, 100, 100), (5_000, 100, 1_000), (2_000, 10, 200)] {
        let mut table = LeaseTable::new(7);
        let slots: Vec<_> = (0..came)
            .map(|n| table.insert(holding(&format!("former {n}"), 1.0, 60)))
            .collect();
        for slot in &slots[stay..] {
            table.remove(*slot).unwrap();
        }
        for n in 0..newcomers {
            table.insert(holding(&format!("newcomer {n}"), 1.0, 70));
            table.assert_consistent();
        }
        while !matches!(table.expire_one(at(100)), Expired::NothingDue) {}
        assert_eq!(
            table.len(),
            0,
            "{came} came, {stay} stayed, {newcomers} are new"
        );
    }
}
