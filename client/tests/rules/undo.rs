//! A request that passed its rules and was then not served gets back what it took, and no more.

use std::cell::Cell;
use std::time::Duration;

use doorward::rules::{Descriptor, Entry, Leases, Limiter, Part, Request, Rule, Service, Settled};
use doorward_limits::{Decision as Taken, Moment};

use crate::story::rules;

const LOCAL: &str = "rate_limit: {rate: 5/h}";
const SHARED: &str = "scope: shared\n  on_failure: open\n  rate_limit: {rate: 5/h}";

/// A lease of ten units, which the process may not have yet.
struct Lease {
    is_there: Cell<bool>,
    left: Cell<u64>,
}

impl Leases for Lease {
    fn take(&self, _rule: &Rule, _descriptor: &str, cost: u64) -> Option<Result<(), Taken>> {
        self.is_there.get().then(|| {
            self.left.set(self.left.get() - cost);
            Ok(())
        })
    }

    fn give_back(&self, _rule: &Rule, _descriptor: &str, cost: u64, _took: Duration) -> u64 {
        let given = if self.is_there.get() { cost } else { 0 };
        self.left.set(self.left.get() + given);
        given
    }

    fn charge(&self, _rule: &Rule, _descriptor: &str, cost: u64, _debt_max: u64) -> u64 {
        self.left.set(self.left.get().saturating_sub(cost));
        cost
    }
}

/// Lets a request pass, changes something, and undoes it. Returns what is left of the lease and of the rule.
fn undone(
    rule: &str,
    head: &str,
    is_leased: bool,
    change: impl FnOnce(&Service, &Lease),
) -> (u64, Option<u64>) {
    let text = format!("domain: shop\n{head}descriptors:\n- key: user\n  {rule}\n");
    let limiter = Limiter::new(rules(&text), 1_000, [1, 2]);
    let parts = vec![("user".to_owned(), Part::Header("x-user".to_owned()))];
    let service = Service::new(limiter, "shop", parts);
    let lease = Lease {
        is_there: Cell::new(is_leased),
        left: Cell::new(10),
    };
    let request = Request {
        peer: None,
        method: b"GET",
        path: b"/",
        headers: &[("x-user", b"ann")],
        login: None,
    };
    let decide = || service.decide_with(&request, Some(&lease), true, Moment::ORIGIN);
    let decision = decide();
    assert!(decision.is_allowed);
    change(&service, &lease);
    service.undo(&request, &decision, Some(&lease), Moment::ORIGIN);
    let left = lease.left.get();
    // This request takes one unit, too.
    (left, decide().remaining())
}

#[test]
fn what_was_taken_goes_back_and_nothing_else() {
    let keep = |_: &Service, _: &Lease| {};
    assert_eq!(undone(LOCAL, "", false, keep), (10, Some(4)));
    assert_eq!(undone(SHARED, "", true, keep), (10, Some(4)));
    // The lease came after the decision, so the request took nothing of it.
    let comes = |_: &Service, lease: &Lease| lease.is_there.set(true);
    assert_eq!(undone(SHARED, "", false, comes).0, 10);
    // A domain that counts attempts keeps the count.
    assert_eq!(
        undone(LOCAL, "count: attempts\n", false, keep),
        (10, Some(3))
    );
    // The counter of changed rules kept its ratio, and the decision was about the former rule.
    let replaced = |service: &Service, _: &Lease| {
        let text = "domain: shop\ndescriptors:\n- key: user\n  rate_limit: {rate: 10/h}\n";
        service.limiter().replace(rules(text), Moment::ORIGIN);
    };
    assert_eq!(undone(LOCAL, "", false, replaced), (10, Some(7)));
}

#[test]
fn a_cost_above_the_limit_takes_no_more_of_a_lease_than_the_limit() {
    for (head, left) in [("", 10), ("count: attempts\n", 5)] {
        let text = format!("domain: shop\n{head}descriptors:\n- key: user\n  {SHARED}\n");
        let limiter = Limiter::new(rules(&text), 1_000, [1, 2]);
        let lease = Lease {
            is_there: Cell::new(true),
            left: Cell::new(10),
        };
        let entries = [Entry {
            key: "user",
            value: Some(b"ann"),
        }];
        let descriptors = [Descriptor {
            entries: &entries,
            hits: None,
        }];
        let hits = Some(1_000_000_000);
        let decision =
            limiter.decide_with("shop", &descriptors, hits, Some(&lease), Moment::ORIGIN);
        assert!(!decision.is_allowed);
        assert_eq!(lease.left.get(), left);
    }
}

#[test]
fn a_refund_of_what_an_open_rule_did_not_count_changes_nothing() {
    let text = format!("domain: shop\ndescriptors:\n- key: user\n  {SHARED}\n");
    let limiter = Limiter::new(rules(&text), 1_000, [1, 2]);
    let lease = Lease {
        is_there: Cell::new(true),
        left: Cell::new(10),
    };
    let entries = [Entry {
        key: "user",
        value: Some(b"ann"),
    }];
    let descriptors = [Descriptor {
        entries: &entries,
        hits: None,
    }];
    let now = Moment::ORIGIN;
    let decide = |hits| limiter.decide_with("shop", &descriptors, Some(hits), Some(&lease), now);
    assert_eq!(decide(3).remaining(), Some(2));
    lease.is_there.set(false);
    assert!(decide(2).is_allowed, "without a lease, the rule is open");
    limiter.settle("shop", &descriptors, Some(2), Settled::Refund, &lease, now);
    lease.is_there.set(true);
    assert_eq!(decide(1).remaining(), Some(1));
}
