//! Cost of rules: loading a document, finding a rule, and a decision, with the allocations of each.
//!
//! `cargo bench -p doorward --bench rules`
//!
//! Decisions are for 100,000 users, by a domain of ten rules of which three match.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a bench may panic"
)]
#![allow(missing_docs, reason = "the macros of divan write some items")]

use std::fmt::Write as _;
use std::hint::black_box;

use divan::{AllocProfiler, Bencher};
use doorward::rules::{Address, Descriptor, Entry, Limiter, Part, Request, Rules, Service};
use doorward_limits::Moment;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// Descriptors of the large document.
const DESCRIPTORS: usize = 10_000;

/// Users, each with a counter.
const USERS: u64 = 100_000;

/// Ten rules: a request has a user, an address and a path.
const TEN: &str = "domain: shop
descriptors:
- key: user
  rate_limit: {rate: 1000000000/h}
- key: remote_address
  rate_limit: {rate: 1000000000/h, algorithm: token_bucket}
- key: path
  value: /checkout
  rate_limit: {rate: 1000000000/h}
- key: path
  value: /search
  rate_limit: {rate: 1000/h}
- key: path
  value: '/admin*'
  rate_limit: {rate: 10/h}
- key: user
  value: root
  rate_limit: {unlimited: true}
- key: user
  value: 'robot-*'
  rate_limit: {rate: 1000/h}
- key: remote_address
  value: '10.*'
  rate_limit: {unlimited: true}
- key: path
  value: /login
  rate_limit: {rate: 10/min}
- key: path
  value: /reset
  rate_limit: {rate: 10/h}
";

fn large() -> String {
    let mut text = "domain: shop\ndescriptors:\n".to_owned();
    for number in 0..DESCRIPTORS {
        let limit = "rate_limit: {unit: minute, requests_per_unit: 10}";
        writeln!(text, "- key: user\n  value: user-{number}\n  {limit}").unwrap();
    }
    text
}

#[divan::bench]
fn load_10000_descriptors(bencher: Bencher<'_, '_>) {
    let text = large();
    bencher.bench(|| Rules::load(&[("large.yaml", black_box(&text))]).unwrap());
}

#[divan::bench(sample_size = 1000)]
fn find_one_of_10000(bencher: Bencher<'_, '_>) {
    let rules = Rules::load(&[("large.yaml", &large())]).unwrap();
    let mut number = 0;
    let mut name = String::new();
    bencher.bench_local(|| {
        number = (number + 7_919) % DESCRIPTORS;
        name.clear();
        write!(name, "user-{number}").unwrap();
        let value = Some(name.as_bytes());
        let entry = Entry { key: "user", value };
        assert!(rules.find("shop", black_box(&[entry])).is_some());
    });
}

fn limiter() -> Limiter {
    let rules = Rules::load(&[("ten.yaml", TEN)]).unwrap();
    Limiter::new(rules, 1_000_000, [1, 2])
}

/// Returns all names, and a counter for each in the limiter.
fn users(allow: impl Fn(&str) -> bool) -> Vec<String> {
    let names: Vec<_> = (0..USERS).map(|number| format!("user-{number}")).collect();
    assert!(names.iter().all(|name| allow(name)));
    names
}

fn decide(limiter: &Limiter, name: &str) -> bool {
    let entries = [
        ("user", name),
        ("remote_address", "192.0.2.1"),
        ("path", "/checkout"),
    ];
    let entries = entries.map(|(key, value)| {
        let value = Some(value.as_bytes());
        [Entry { key, value }]
    });
    let descriptors = entries.each_ref().map(|entries| Descriptor {
        entries,
        hits: None,
    });
    limiter.allow("shop", &descriptors, Moment::ORIGIN)
}

#[divan::bench(sample_size = 1000)]
fn decide_by_three_rules_of_ten(bencher: Bencher<'_, '_>) {
    let limiter = limiter();
    let names = users(|name| decide(&limiter, name));
    let mut names = names.iter().cycle().step_by(7_919);
    bencher.bench_local(|| assert!(decide(&limiter, names.next().unwrap())));
}

fn serve(service: &Service, name: &str) -> bool {
    let headers: [(&str, &[u8]); 3] = [
        ("host", b"shop.example"),
        ("x-user", name.as_bytes()),
        ("x-forwarded-for", b"203.0.113.7, 192.0.2.1"),
    ];
    let request = Request {
        peer: Some([10, 0, 0, 1].into()),
        method: b"POST",
        path: b"/checkout",
        headers: &headers,
        login: None,
    };
    service.allow(black_box(&request), Moment::ORIGIN)
}

#[divan::bench(sample_size = 1000)]
fn decide_a_request(bencher: Bencher<'_, '_>) {
    let path = Part::Own(Box::new(|request| Some(request.path.into())));
    let address = Address {
        from: doorward::rules::address::Forwarding::XForwardedFor,
        trusted: doorward::rules::Trusted::Hops(1),
        ..Address::peer()
    };
    let parts = [
        ("user", Part::Header("x-user".to_owned())),
        ("remote_address", Part::Address(address)),
        ("path", path),
    ];
    let parts = parts.map(|(key, part)| (key.to_owned(), part)).into();
    let service = Service::new(limiter(), "shop", parts);
    let names = users(|name| serve(&service, name));
    let mut names = names.iter().cycle().step_by(7_919);
    bencher.bench_local(|| assert!(serve(&service, names.next().unwrap())));
}
