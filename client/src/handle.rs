//! Use of an open resource, by its handles and limiters. The last one closes the resource, and perhaps the client.

use std::sync::Arc;

use crate::limiter::rate::{Burst, LeasedRate};
use crate::refusal::{Refusal, Why};
use crate::slot::Slot;
use crate::time::Time;
use crate::transport::task::Shared;

/// A guard that closes the client when it is dropped.
pub(crate) struct CloseGuard(pub(crate) Arc<Shared>);

impl Drop for CloseGuard {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// State that clones of a resource and its limiters share.
pub(crate) struct Handle {
    pub(crate) slot: Arc<Slot>,
    pub(crate) shared: Arc<Shared>,
    /// Keeps the client open.
    pub(crate) guard: Arc<CloseGuard>,
}

/// A guard that closes the resource when it is dropped, after the last handle and the last permit.
struct Closing {
    slot: Arc<Slot>,
    shared: Arc<Shared>,
    _guard: Arc<CloseGuard>,
}

impl Handle {
    pub(crate) fn rate_state(&self) -> &LeasedRate {
        // Only `Resource::rate_limiter` makes limiters, and it has set the rate.
        self.slot
            .rate
            .get_or_init(|| LeasedRate::new(Burst::default(), self.shared.clock.now()))
    }

    /// Returns the usual refusal; or, if less than `least` may be used and waiting does not help, one with the reason.
    pub(crate) fn refusal(&self, usual: Refusal, least: f64, now: Time) -> Refusal {
        let view = self.slot.view.borrow();
        match view.permanent_failure(now) {
            Some(trouble) if view.allowance.at(now).get() < least => {
                let message = trouble.message.clone();
                Refusal::new(Why::UnknownResource { message }, None)
            }
            _ => usual,
        }
    }

    /// If less than `least` may be used: sets the time until the client's next answer, which may change that.
    pub(crate) fn until_next_answer(&self, refusal: Refusal, least: f64) -> Refusal {
        self.shared.before_refusal();
        let now = self.shared.clock.now();
        let view = self.slot.view.borrow();
        match view.answer_in(now) {
            Some(answer_in) if refusal.passes() && view.allowance.at(now).get() < least => {
                let time = refusal
                    .retry_after
                    .map_or(answer_in, |it| it.min(answer_in));
                Refusal::over(Some(time))
            }
            _ => refusal,
        }
    }

    /// Applies the current allowance, which a limiter may have missed while it was made.
    pub(crate) fn catch_up(&self) {
        let view = self.slot.view.borrow();
        self.slot.feed(&view, self.shared.clock.now());
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let closing = Closing {
            slot: self.slot.clone(),
            shared: self.shared.clone(),
            _guard: self.guard.clone(),
        };
        match self.slot.concurrency.get() {
            Some(gate) => gate.keep(Box::new(closing)),
            None => drop(closing),
        }
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        let now = self.shared.clock.now();
        let mut book = self.shared.book();
        book.close(&self.slot, now);
        drop(book);
        self.slot.close();
        self.shared.wake();
    }
}
