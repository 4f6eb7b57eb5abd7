//! Tests of programs that use this library, without a server.
//!
//! [`Client::fake`](crate::Client::fake) creates a client and a [`FakeServer`]. The client is the real one, with its
//! limiters, modes and hooks. The fake server answers each of its requests at once, with the values that the test has
//! set. There is no network and no background task, so a plain `#[test]` is enough, unless it awaits something.
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
//! // No capacity: the limiter refuses.
//! server.set_capacity("db/orders", 0.0);
//! let limiter = database.rate_limiter(Burst::default());
//! assert!(limiter.try_acquire(1.0).is_err());
//!
//! // No server answers until every lease has expired: the mode decides.
//! server.stop();
//! assert_eq!(database.capacity(), Capacity::NONE);
//! # Ok::<(), doorward_client::ResourceError>(())
//! ```
//!
//! **A resource without settings gets all that the client wants**, as from a real server with enough capacity. A client
//! gets no more than it wants, so a client that wants 0 gets 0.
//!
//! **Time** is that of tokio's timers, which a test may pause. Under `#[tokio::test(start_paused = true)]` (tokio's
//! feature `test-util`), a thousand acquisitions of a rate limiter take their time by that clock, and no real time. A
//! lease lasts for a week by that clock, or until [`FakeServer::stop`].

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::capacity::Capacity;
use crate::slot::lock;
use crate::state::{Granted, LimitedBy, RefusalKind, Refused, Response, SPAN_MAX, Step};
use crate::transport::task::{self, Shared};

/// Refresh interval of every lease; no test waits for it.
const REFRESH_INTERVAL: Duration = Duration::from_secs(5);

/// One test gets the same waits in every run.
const CHANCE: f64 = 0.5;

/// A server for a fake client. Each change reaches the client's resources and limiters before the call returns. Cheap
/// to clone; clones are the same server. It does not keep the client open.
#[derive(Clone)]
pub struct FakeServer {
    shared: Arc<Shared>,
}

/// Answers to a fake client's requests.
#[derive(Debug, Default)]
pub(crate) struct FakeAnswers {
    settings: Mutex<Settings>,
}

#[derive(Debug, Default)]
struct Settings {
    is_down: bool,
    resources: BTreeMap<String, Setting>,
}

/// Settings of one resource.
#[derive(Clone, Debug, Default)]
struct Setting {
    /// Capacity; None: no limit.
    capacity: Option<f64>,
    safe_capacity: Option<f64>,
    /// Refusal: no lease, whatever the capacity.
    refusal: Option<(RefusalKind, String)>,
}

impl FakeServer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Sets this client's capacity of a resource; the client gets no more than it wants. An invalid number, such as one
    /// below 0, gives no lease, as from a real server.
    pub fn set_capacity(&self, resource: &str, capacity: f64) {
        self.change(resource, |setting| {
            setting.capacity = Some(capacity);
            setting.refusal = None;
        });
    }

    /// Sets the safe capacity: the largest amount that a client in safe mode uses after its lease ended. The default is
    /// nothing.
    pub fn set_safe_capacity(&self, resource: &str, safe_capacity: f64) {
        self.change(resource, |setting| {
            setting.safe_capacity = Some(safe_capacity);
        });
    }

    /// Refuses a resource as unknown, with `message`, as if no template matched it. A valid lease stays valid, as with
    /// a real server.
    pub fn set_unknown(&self, resource: &str, message: &str) {
        self.change(resource, |setting| {
            setting.refusal = Some((RefusalKind::Unknown, message.to_owned()));
        });
    }

    /// Refuses a resource because another process has the lease under this client's id, for longer than a restart
    /// takes. The client's own lease ends.
    pub fn set_another_process(&self, resource: &str) {
        self.change(resource, |setting| {
            let message = "the fake server says that another process has the client id";
            setting.refusal = Some((RefusalKind::AnotherProcess, message.to_owned()));
        });
    }

    /// Stops answering and ends every lease, so modes decide. Requests fail from now on, and limiters name longer and
    /// longer times to wait, as with a real server.
    pub fn stop(&self) {
        self.settings(|settings| settings.is_down = true);
    }

    /// Answers again.
    pub fn start(&self) {
        self.settings(|settings| settings.is_down = false);
    }

    /// Makes the client ask again for its current wants, with the measured ones of its limiters.
    pub fn refresh(&self) {
        self.shared.measure();
        self.shared.wake();
    }

    /// Returns the client's wants of a resource, or `None` if it has not opened it.
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
    /// Answers at once, as the background task of a real client does when it is woken.
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
            let is_first = book.state.failures() == 0 && book.state.resources().next().is_some();
            if is_first || book.state.next_step(now) == Step::Send {
                let (sequence, _) = book.state.ask_at_once(now);
                book.state.handle_failure(sequence, CHANCE, now);
            }
            drop((book, settings));
        } else {
            let (sequence, wanted) = book.state.ask_at_once(now);
            let response = settings.response(&wanted);
            // Releases the lock, because hooks may call the server.
            drop(settings);
            task::apply_answer(shared, book, sequence, &response, CHANCE, now);
        }
        shared.publish();
    }

    /// If the server is stopped: fails a request that is due by now. A real client's task does so by itself.
    pub(crate) fn fail_if_due(&self, shared: &Shared) {
        let is_down = lock(&self.settings).is_down;
        if is_down {
            self.serve(shared);
        }
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
