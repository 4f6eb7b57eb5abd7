//! Tests of programs that use this library, without a server.
//!
//! [`Client::fake`](crate::Client::fake) creates a client and a [`FakeServer`]. The client is the real one, with its
//! limiters, modes and hooks. The fake server answers each of its requests at once, with the values that the test has
//! set. There is no network and no background task, so a plain `#[test]` is enough, unless it awaits something.
//!
//! ```
//! use doorward::limiter::rate::Burst;
//! use doorward::{Capacity, Client, Mode};
//!
//! let (client, server) = Client::fake("frontend-7");
//! server.set_capacity("db/orders", 30.0);
//! let database = client.resource("db/orders").wants(50.0).mode(Mode::Pessimistic).open()?;
//! assert_eq!(database.capacity(), Capacity::Limited(30.0));
//!
//! // No capacity: the limiter refuses.
//! server.set_capacity("db/orders", 0.0);
//! let limiter = database.rate_limiter(Burst::default());
//! assert!(limiter.try_acquire(1).is_err());
//!
//! // No server answers until every lease has expired: the mode decides.
//! server.stop();
//! assert_eq!(database.capacity(), Capacity::NONE);
//! # Ok::<(), doorward::ResourceError>(())
//! ```
//!
//! **A resource without settings gets all that the client wants**, as from a real server with enough capacity. A client
//! gets no more than it wants, so a client that wants 0 gets 0.
//!
//! **Time** is that of tokio's timers, which a test may pause. Under `#[tokio::test(start_paused = true)]` (tokio's
//! feature `test-util`), a thousand acquisitions of a rate limiter take their time by that clock, and no real time. A
//! lease lasts for a week by that clock, or until [`FakeServer::stop`].

use std::sync::Arc;

use crate::lock::lock;
use crate::state::RefusalKind;
use crate::transport::fake_answers::{FakeAnswers, Setting};
use crate::transport::task::Shared;

/// A server for a fake client. Each change reaches the client's resources and limiters before the call returns. Cheap
/// to clone; clones are the same server. It does not keep the client open.
#[derive(Clone)]
pub struct FakeServer {
    shared: Arc<Shared>,
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
        self.shared.measure_if(|_, _| true);
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

    fn settings(&self, change: impl FnOnce(&mut FakeAnswers)) {
        if let Some(fake) = &self.shared.fake {
            change(&mut lock(fake));
        }
        self.shared.wake();
    }
}

debug_by_name!(FakeServer);
