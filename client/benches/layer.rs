//! Cost of the layer of a server, beside the service alone: ten rules of which three match, for 100,000 users.
//!
//! `cargo bench -p doorward --bench layer`

#![allow(clippy::unwrap_used, reason = "a bench may panic")]
#![allow(missing_docs, reason = "the macros of divan write some items")]

use std::cell::Cell;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use divan::Bencher;
use doorward::layer::{LimitLayer, Limits};
use doorward::rules::{Address, Part, Rules, Template};
use http::{Request, Response};
use tower::{Layer, Service};

const USERS: u32 = 100_000;

const TEN: &str = "domain: shop
descriptors:
- {key: user, rate_limit: {rate: 1000000000/h}}
- {key: remote_address, rate_limit: {rate: 1000000000/h, algorithm: token_bucket}}
- {key: path, value: /checkout, rate_limit: {rate: 1000000000/h}}
- {key: path, value: /search, rate_limit: {rate: 1000/h}}
- {key: path, value: '/admin*', rate_limit: {rate: 10/h}}
- {key: user, value: root, rate_limit: {unlimited: true}}
- {key: user, value: 'robot-*', rate_limit: {rate: 1000/h}}
- {key: remote_address, value: '10.*', rate_limit: {unlimited: true}}
- {key: path, value: /login, rate_limit: {rate: 10/min}}
- {key: path, value: /reset, rate_limit: {rate: 10/h}}
";

fn main() {
    divan::main();
}

#[derive(Clone)]
struct Answers;

impl Service<Request<()>> for Answers {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = Ready<Result<Response<()>, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<()>) -> Self::Future {
        ready(Ok(Response::new(())))
    }
}

/// Requests of all users, made before the measurement.
fn requests() -> impl FnMut() -> Request<()> {
    let number = Cell::new(0_u32);
    move || {
        let user = number.get() % USERS;
        number.set(number.get() + 7_919);
        let [_, b, c, d] = user.to_be_bytes();
        let peer = SocketAddr::from(([192, b, c, d], 4_000));
        let request = Request::get("/checkout").header("x-user", format!("user-{user}"));
        request.extension(peer).body(()).unwrap()
    }
}

fn measure<S: Service<Request<()>>>(bencher: Bencher<'_, '_>, mut service: S) {
    let mut context = Context::from_waker(Waker::noop());
    let mut warm = requests();
    for _ in 0..USERS {
        let answer = pin!(service.call(warm())).poll(&mut context);
        assert!(answer.is_ready());
    }
    bencher
        .with_inputs(requests())
        .bench_local_values(|request| pin!(service.call(request)).poll(&mut context).is_ready());
}

#[divan::bench]
fn service_alone(bencher: Bencher<'_, '_>) {
    measure(bencher, Answers);
}

#[divan::bench]
fn service_behind_the_layer(bencher: Bencher<'_, '_>) {
    let rules = Rules::load(&[("shop.yaml", TEN)]).unwrap();
    let limits = Limits::builder("shop")
        .part("user", Part::Header("x-user".to_owned()))
        .part("remote_address", Part::Address(Address::peer()))
        .part("path", Part::Path(vec![Template::new("/checkout")]));
    measure(
        bencher,
        LimitLayer::new(limits.load(rules).unwrap()).layer(Answers),
    );
}
