//! The client's background task: it asks the state for the next step, does it, and publishes the allowances.

use std::future::Future;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use doorward_proto::doorman;
use tokio::sync::{Notify, watch};
use tracing::{debug, error, info, warn};

use crate::clock::{self, Clock};
use crate::error::ResourceError;
use crate::hooks::Hooks;
use crate::lock::lock;
use crate::slot::{Slot, View};
use crate::state::{FailureKind, Response, Step};
use crate::time::Time;
use crate::transport::book::{Book, earlier};
use crate::transport::connection::{Connection, Failure, Reason};
use crate::transport::convert;
use crate::transport::fake_answers::FakeAnswers;

/// Longest time of the last release when a client is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Time after which a task that has not run is late.
const LATE: Duration = Duration::from_secs(2);

/// Number of resources that are measured under one lock.
const MEASURED_MAX: usize = 1_000;

/// Waits of a fake client are the same in every run of a test.
const FAKE_CHANCE: f64 = 0.5;

/// State that handles, limiters and the task share.
pub(crate) struct Shared {
    pub(crate) client_id: String,
    /// Number of this process, towards servers.
    pub(crate) incarnation: u64,
    pub(crate) clock: Clock,
    pub(crate) hooks: Arc<dyn Hooks>,
    /// Whether the program gave these hooks; otherwise no call is made.
    pub(crate) is_observed: bool,
    pub(crate) book: Mutex<Book>,
    /// Runtime of the task.
    pub(crate) runtime: Option<tokio::runtime::Handle>,
    /// Time at which the task has something to do, in nanoseconds; the largest number if there is none.
    pub(crate) due: AtomicU64,
    /// Whether it was told that the task is late.
    pub(crate) is_late: AtomicBool,
    /// Notification of the task: see [`Shared::wake`].
    pub(crate) wake: Notify,
    pub(crate) closing: AtomicBool,
    pub(crate) closed: watch::Sender<bool>,
    /// Replacement of servers and of the task, in tests of programs.
    pub(crate) fake: Option<Mutex<FakeAnswers>>,
}

impl Shared {
    /// Locks the book. No code panics while it holds the lock; even after a panic, the state would be consistent.
    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Wakes the task, or lets the fake server answer.
    pub(crate) fn wake(&self) {
        match &self.fake {
            None => self.wake.notify_one(),
            Some(fake) => self.serve(fake),
        }
    }

    /// Sets the time at which the task has something to do.
    pub(crate) fn is_due_at(&self, time: Option<Time>) {
        let nanos = time.and_then(|time| u64::try_from(time.since_origin().as_nanos()).ok());
        self.due.store(nanos.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns for how long the task should have run, if it is late.
    pub(crate) fn late(&self, now: Time) -> Option<Duration> {
        let due = Duration::from_nanos(self.due.load(Ordering::Relaxed));
        let late = now.since(Time::after_origin(due));
        (late > LATE && !self.closing.load(Ordering::SeqCst)).then_some(late)
    }

    /// Before a refusal: tells once if the task is late, and lets a fake server that is stopped fail what is due by now.
    pub(crate) fn before_refusal(&self) {
        let now = self.clock.now();
        if let Some(late) = self.late(now)
            && !self.is_late.swap(true, Ordering::Relaxed)
        {
            error!("{}", ResourceError::TaskIsLate(late));
        }
        let Some(fake) = &self.fake else {
            return;
        };
        if self.book().measure_at.is_some_and(|at| at <= now) {
            self.measure();
            self.serve(fake);
        }
        if lock(fake).is_down {
            self.serve(fake);
        }
    }

    /// Answers at once, as the background task of a real client does when it is woken.
    fn serve(&self, fake: &Mutex<FakeAnswers>) {
        if self.closing.load(Ordering::SeqCst) {
            self.close_slots();
            self.closed.send_replace(true);
            return;
        }
        let settings = lock(fake);
        let now = self.clock.now();
        let mut book = self.book();
        if settings.is_down {
            book.state.end_leases(now);
            book.failure = Some("the fake server is stopped".to_owned());
            let is_first = book.state.failures() == 0 && book.state.resources().next().is_some();
            if is_first || book.state.next_step(now) == Step::Send {
                let (sequence, _) = book.state.ask_at_once(now);
                let kind = FailureKind::OutOfReach;
                book.state.handle_failure(sequence, kind, FAKE_CHANCE, now);
            }
            drop((book, settings));
        } else {
            let (sequence, wanted) = book.state.ask_at_once(now);
            let is_budget = |id: &str| book.slots.get(id).is_some_and(|it| it.budget.is_some());
            let response = settings.response(&wanted, is_budget);
            // Releases the lock, because hooks may call the server.
            drop(settings);
            book.state
                .handle_response(sequence, &response, FAKE_CHANCE, now);
            book.failure = None;
            drop(book);
        }
        self.publish();
    }

    /// Closes all handles and limiters.
    pub(crate) fn close_slots(&self) {
        for slot in self.book().slots.values() {
            slot.close();
        }
    }

    /// Publishes what has changed. Calls hooks without the lock, so that they may call the client.
    pub(crate) fn publish(&self) {
        let now = self.clock.now();
        let mut book = self.book();
        let changed = book.state.take_changed(now);
        let news = changed.iter().filter_map(|id| {
            let slot = book.slots.get(&**id)?;
            let next_answer = book.state.next_answer(id);
            let (before, after) = slot.publish(book.state.resource(id)?, next_answer, now)?;
            Some((Arc::clone(slot), before, after))
        });
        let news: Vec<_> = news.collect();
        drop(book);
        for (slot, before, after) in news {
            self.tell(&slot.id, &before, &after, now);
        }
    }

    /// Tells the log and the hooks what is new about a resource.
    fn tell(&self, resource: &str, before: &View, after: &View, now: Time) {
        let (capacity, source) = (after.allowance.capacity, after.allowance.source);
        if (capacity, source) != (before.allowance.capacity, before.allowance.source) {
            self.hooks.capacity_changed(resource, capacity, source);
        }
        if after.is_idle(now) && !before.is_idle(now) {
            let left = after.learning_until.map(|until| until.since(now));
            info!(
                resource,
                ?left,
                "a lease of 0: the server is in learning mode"
            );
        }
        // Logged once, and not at every refresh.
        if let Some(trouble) = &after.trouble
            && after.trouble != before.trouble
        {
            warn!(resource, message = trouble.message, "no lease");
            self.hooks.refused(resource, &trouble.message);
        }
    }

    /// Asks for measured wants, where that is set, in slices that leave the lock to others between them.
    pub(crate) fn measure(&self) {
        self.measure_if(|slot, now| slot.is_look_due(now));
    }

    /// Does the same where a slot is to be measured.
    pub(crate) fn measure_if(&self, is_due: impl Fn(&Slot, Time) -> bool) {
        let now = self.clock.now();
        self.book().measure_at = None;
        let mut from = Bound::Unbounded;
        loop {
            let mut book = self.book();
            let Book {
                state,
                slots,
                measure_at,
                ..
            } = &mut *book;
            let mut last = None;
            for (id, slot) in slots.range((from, Bound::Unbounded)).take(MEASURED_MAX) {
                last = Some(id);
                let Some((wants, interval)) = slot.measured_wants(is_due(slot, now), now) else {
                    continue;
                };
                if let Some(wants) = wants {
                    state.ask_measured(id, wants, now);
                }
                earlier(measure_at, now + interval);
            }
            let Some(last) = last else {
                return;
            };
            from = Bound::Excluded(last.clone());
        }
    }
}

/// A call under way, which handles its outcome, and then returns the connection.
type Call = Pin<Box<dyn Future<Output = Box<Connection>> + Send>>;

/// Runs until the client is closed, then releases everything.
pub(crate) async fn run(shared: Arc<Shared>, connection: Connection) {
    let mut link = Err(Box::new(connection));
    loop {
        if shared.closing.load(Ordering::SeqCst) {
            break;
        }
        let now = shared.clock.now();
        if shared.book().measure_at.is_some_and(|at| at <= now) {
            shared.measure();
        }
        shared.publish();
        link = link.or_else(|connection| next_call(&shared, connection));
        let until = {
            let book = shared.book();
            let step = match book.state.next_step(now) {
                Step::Wait(until) => until,
                Step::Send | Step::Release => None,
            };
            step.into_iter().chain(book.measure_at).min()
        };
        shared.is_due_at(until);
        shared.is_late.store(false, Ordering::Relaxed);
        let news = async {
            match &mut link {
                Ok(call) => Ok(call.await),
                Err(connection) => Err(connection.push().await),
            }
        };
        // A branch without a time never comes.
        tokio::select! {
            news = news => match news {
                Ok(connection) => link = Err(connection),
                Err(Some(push)) => handle_push(&shared, push),
                Err(None) => {
                    let now = shared.clock.now();
                    shared.book().state.handle_disconnected(clock::chance(), now);
                }
            },
            () = shared.clock.sleep_until(until.unwrap_or(now)), if until.is_some() => {}
            () = shared.wake.notified() => {}
        }
    }
    finish(&shared, link).await;
    shared.closed.send_replace(true);
}

/// Starts the next call, if there is one; otherwise returns the connection.
fn next_call(
    shared: &Arc<Shared>,
    mut connection: Box<Connection>,
) -> Result<Call, Box<Connection>> {
    let (mut book, owned) = (shared.book(), Arc::clone(shared));
    match book.state.next_step(shared.clock.now()) {
        Step::Wait(_) => return Err(connection),
        Step::Release => {
            let release = book.state.release();
            let ids = release.resources.iter().map(ToString::to_string);
            let words = book.last_words(&release.resources);
            let request = doorman::ReleaseCapacityRequest {
                budget: words,
                incarnation: Some(shared.incarnation),
                client_id: shared.client_id.clone(),
                resource_id: ids.collect(),
                sequence: Some(release.sequence),
            };
            return Ok(Box::pin(async move {
                connection.release(request).await;
                owned.book().state.handle_released(release.sequence);
                connection
            }));
        }
        Step::Send => {}
    }
    let Book { state, slots, .. } = &mut *book;
    let now = shared.clock.now();
    let sent_since_epoch = clock::wall();
    let in_flight = |id: &str| slots.get(id).map_or(0.0, |slot| slot.in_flight());
    let word = |id: &str, (interval, on_stream)| {
        let budget = slots.get(id)?.budget.as_ref()?;
        Some(lock(budget).say(interval, on_stream, now))
    };
    let request = state.request_with_words(in_flight, word, now);
    let (sequence, on_stream) = (request.sequence, request.on_stream);
    let wire = convert::request(
        &shared.client_id,
        shared.incarnation,
        &request,
        sent_since_epoch,
    );
    let leases_end = state.leases_end(now);
    Ok(Box::pin(async move {
        let outcome = connection.get_capacity(wire, on_stream, leases_end).await;
        let ended_at = owned.clock.now();
        owned.book().note_streams(&mut connection, ended_at);
        let outcome = outcome.map(|it| it.map(|it| convert::response(it, sent_since_epoch)));
        handle(&owned, sequence, outcome, now);
        // Some may have come before the answer, and yet know its request.
        for push in connection.take_pushes() {
            handle_push(&owned, push);
        }
        connection
    }))
}

fn handle_push(shared: &Shared, push: doorman::GetCapacityResponse) {
    let push = convert::response(push, clock::wall());
    let now = shared.clock.now();
    shared.book().state.handle_push(&push, now);
}

fn handle(
    shared: &Shared,
    sequence: u64,
    outcome: Result<Option<Response>, Failure>,
    sent_at: Time,
) {
    let now = shared.clock.now();
    let took = now.since(sent_at);
    let mut book = shared.book();
    match outcome {
        Ok(Some(response)) => {
            let chance = clock::chance();
            book.state.handle_response(sequence, &response, chance, now);
            book.failure = None;
            drop(book);
            shared.hooks.refreshed(true, took);
        }
        Ok(None) => book.state.handle_redirect(sequence),
        Err(Failure { problem, reason }) => {
            let chance = clock::chance();
            match reason {
                Reason::Failed(kind) => book.state.handle_failure(sequence, kind, chance, now),
                Reason::Overloaded(retry_in) => {
                    book.state
                        .handle_overloaded(sequence, retry_in, chance, now);
                }
            }
            if book.failure.is_none() {
                warn!(problem, "cannot refresh; trying again");
            } else {
                debug!(problem, failures = book.state.failures(), "cannot refresh");
            }
            book.failure = Some(problem);
            drop(book);
            shared.hooks.refreshed(false, took);
        }
    }
}

/// Ends a closed client: waits for a request under way, then releases all leases.
async fn finish(shared: &Arc<Shared>, link: Result<Call, Box<Connection>>) {
    // Admits nothing more: other clients may get the released capacity before the answer arrives.
    shared.close_slots();
    let end = async {
        let mut connection = match link {
            Ok(call) => call.await,
            Err(connection) => connection,
        };
        shared.book().close_all(shared.clock.now());
        // Only releases are left.
        while let Ok(call) = next_call(shared, connection) {
            connection = call.await;
        }
    };
    if tokio::time::timeout(CLOSE_TIMEOUT, end).await.is_err() {
        debug!("closed without an answer to the release; the leases will expire");
    }
}
