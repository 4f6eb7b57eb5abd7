//! Tests of programs that use this library, without a server.
//!
//! [`Client::fake`](crate::Client::fake) gives a client and a [`FakeServer`]. The client is the real one, with
//! its limiters, modes and hooks; the fake answers at once whatever it asks, with what the test has set. There
//! is no network and no background task, so a plain `#[test]` is enough, unless it awaits something.
//!
//! ```
//! use doorward_client::limiter::rate::Burst;
//! use doorward_client::{Capacity, Client, Mode};
//!
//! let (client, server) = Client::fake("frontend-7");
//! server.set_capacity("db/orders", 30.0);
//! let database = client.resource("db/orders").wants(50.0).mode(Mode::Pessimistic).open()?;
//! assert_eq!(database.capacity(), Capacity::Limited(30.0));
//!
//! // What does the program do when there is nothing to be had?
//! server.set_capacity("db/orders", 0.0);
//! let limiter = database.rate_limiter(Burst::default());
//! assert!(limiter.try_acquire(1.0).is_err());
//!
//! // And when no server answers for so long that every lease is over?
//! server.stop();
//! assert_eq!(database.capacity(), Capacity::NONE);
//! # Ok::<(), doorward_client::ResourceError>(())
//! ```
//!
//! **Who has set nothing gets all that is wanted**: as from a real server that has plenty. A client gets what it
//! wants, up to the capacity; so one that wants 0 gets 0.
//!
//! **Time** is that of tokio's timers, which a test may stop: under `#[tokio::test(start_paused = true)]`
//! (tokio's feature `test-util`) a thousand acquisitions of a rate limiter take their time by that clock, and
//! none of yours. A lease lasts for a week by that clock, or until [`FakeServer::stop`].

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::capacity::Capacity;
use crate::slot::lock;
use crate::state::{Granted, LimitedBy, RefusalKind, Refused, Response, SPAN_MAX};
use crate::transport::task::{self, Shared};

/// The refresh interval of every lease: nobody has to wait for it.
const REFRESH_INTERVAL: Duration = Duration::from_secs(5);

/// Says what a fake client gets. Each change reaches its resources and limiters before the call returns. Cheap
/// to clone; clones are the same server. It does not keep the client open.
#[derive(Clone)]
pub struct FakeServer {
    shared: Arc<Shared>,
}

/// What a fake client's requests are answered.
#[derive(Debug, Default)]
pub(crate) struct FakeAnswers {
    settings: Mutex<Settings>,
}

#[derive(Debug, Default)]
struct Settings {
    is_down: bool,
    resources: BTreeMap<String, Setting>,
}

/// What was set of a resource.
#[derive(Clone, Debug, Default)]
struct Setting {
    /// None: as much as is wanted.
    capacity: Option<f64>,
    safe_capacity: Option<f64>,
    /// No lease, whatever the capacity.
    refusal: Option<(RefusalKind, String)>,
}

impl FakeServer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// From now on there is so much of a resource for this client; it gets what it wants of that. A number that
    /// no server gives, such as one below 0, is no lease, as it is from a real server.
    pub fn set_capacity(&self, resource: &str, capacity: f64) {
        self.change(resource, |setting| {
            setting.capacity = Some(capacity);
            setting.refusal = None;
        });
    }

    /// What a client in safe mode uses of a resource at most when its lease is over. Until it is set, nothing.
    pub fn set_safe_capacity(&self, resource: &str, safe_capacity: f64) {
        self.change(resource, |setting| {
            setting.safe_capacity = Some(safe_capacity);
        });
    }

    /// From now on no template matches a resource, as `message` says. A lease that it has stays valid, as it
    /// does with a real server.
    pub fn set_unknown(&self, resource: &str, message: &str) {
        self.change(resource, |setting| {
            setting.refusal = Some((RefusalKind::Unknown, message.to_owned()));
        });
    }

    /// From now on another process has the lease of a resource under this client's id, and goes on for longer than
    /// a restart takes. The client's own lease is over.
    pub fn set_another_process(&self, resource: &str) {
        self.change(resource, |setting| {
            let message = "the fake server says that another process has the client id";
            setting.refusal = Some((RefusalKind::AnotherProcess, message.to_owned()));
        });
    }

    /// No server answers any more, and every lease is over: what may be used, modes say.
    pub fn stop(&self) {
        self.settings(|settings| settings.is_down = true);
    }

    /// A server answers again.
    pub fn start(&self) {
        self.settings(|settings| settings.is_down = false);
    }

    /// Has the client ask again for what it wants now: by what its limiters measured, if it is to measure that.
    pub fn refresh(&self) {
        self.shared.measure();
        self.shared.wake();
    }

    /// What the client wants of a resource. None: it has not opened it.
    pub fn wants(&self, resource: &str) -> Option<f64> {
        let book = self.shared.book();
        Some(book.state.resource(resource)?.wants())
    }

    fn change(&self, resource: &str, change: impl FnOnce(&mut Setting)) {
        self.settings(|settings| {
            change(settings.resources.entry(resource.to_owned()).or_default())
        });
    }

    fn settings(&self, change: impl FnOnce(&mut Settings)) {
        if let Some(fake) = &self.shared.fake {
            change(&mut lock(&fake.settings));
        }
        self.shared.wake();
    }
}

impl fmt::Debug for FakeServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeServer")
            .field("answers", &self.shared.fake)
            .finish_non_exhaustive()
    }
}

impl FakeAnswers {
    /// Does at once what the background task of a real client does when it is woken.
    pub(crate) fn serve(&self, shared: &Shared) {
        if shared.closing.load(Ordering::SeqCst) {
            shared.close_slots();
            shared.closed.send_replace(true);
            return;
        }
        let settings = lock(&self.settings);
        let now = shared.clock.now();
        let mut book = shared.book();
        book.releases.clear();
        if settings.is_down {
            book.state.end_leases(now);
            book.failure = Some("the fake server is stopped".to_owned());
            drop((book, settings));
        } else {
            let (sequence, wanted) = book.state.ask_at_once(now);
            let response = settings.response(&wanted);
            // Hooks are called, and may set something.
            drop(settings);
            // The same test waits for the same time.
            task::apply_answer(shared, book, sequence, &response, 0.0, now);
        }
        shared.publish();
    }
}

impl Settings {
    fn response(&self, wanted: &BTreeMap<String, f64>) -> Response {
        let mut response = Response::default();
        for (resource, wants) in wanted {
            let setting = self.resources.get(resource).cloned().unwrap_or_default();
            match setting.refusal {
                Some((kind, message)) => response.refused.push(Refused {
                    resource: resource.clone(),
                    kind,
                    message,
                    retry_in: None,
                }),
                None => response.granted.push(setting.lease(resource, *wants)),
            }
        }
        response
    }
}

impl Setting {
    fn lease(&self, resource: &str, wants: f64) -> Granted {
        let capacity = self.capacity.unwrap_or(wants);
        let is_enough = capacity >= wants;
        Granted {
            resource: resource.to_owned(),
            capacity: if is_enough { wants } else { capacity },
            expires_in: SPAN_MAX,
            refresh_in: REFRESH_INTERVAL,
            safe_capacity: self.safe_capacity.map(Capacity::Limited),
            granted_by: None,
            limited_by: Some(if is_enough {
                LimitedBy::Wants
            } else {
                LimitedBy::Share
            }),
            learning_for: None,
            decided: Some(true),
        }
    }
}
