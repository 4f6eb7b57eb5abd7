//! The status as server-sent events, once a second while a browser looks on. Browsers with the same query share the
//! work, and answers are made one at a time, with a rest after each. A candidate holds nothing, and shows what its
//! master holds.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::status::{GetStatusRequest, Query, ServerState, Status};
use crate::web::others::Others;

const EVERY: Duration = Duration::from_secs(1);

/// Rest after an answer, by the time that it took, up to a second.
const REST: u32 = 9;

/// Largest number of different queries.
const VIEWS_MAX: usize = 32;

/// An answer as an event. Browsers share its bytes.
type Answers = watch::Sender<Bytes>;

type View = (Arc<Answers>, JoinHandle<()>);

/// Queries that browsers follow, with the newest answer to each.
#[derive(Debug)]
pub(super) struct Live {
    state: Arc<ServerState>,
    others: Arc<Others>,
    views: Mutex<BTreeMap<Query, View>>,
    /// One answer is made at a time.
    turn: tokio::sync::Mutex<()>,
    /// Ends all streams.
    stop: CancellationToken,
}

impl Live {
    pub(super) fn new(
        state: Arc<ServerState>,
        others: Arc<Others>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            state,
            others,
            views: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            stop,
        }
    }

    /// Follows a query, which `request` means. None: too many different ones are followed.
    pub(super) fn follow(
        self: &Arc<Self>,
        query: Query,
        request: GetStatusRequest,
    ) -> Option<Response> {
        let mut views = self.views.lock();
        views.retain(|_, (_, task)| !task.is_finished());
        let is_full = views.len() >= VIEWS_MAX;
        let view = match views.get(&query) {
            Some((view, _)) => Arc::clone(view),
            None if is_full => return None,
            None => {
                let view = Arc::new(Answers::new(Bytes::new()));
                let keep = Arc::clone(self).keep(query.clone(), request, Arc::clone(&view));
                views.insert(query, (Arc::clone(&view), tokio::spawn(keep)));
                view
            }
        };
        let mut answers = view.subscribe();
        drop(views);
        if !answers.borrow().is_empty() {
            answers.mark_changed();
        }
        let events = stream::unfold((answers, self.stop.clone()), |(mut answers, stop)| async {
            tokio::select! {
                changed = answers.changed() => changed.ok()?,
                () = stop.cancelled() => return None,
            }
            let event = answers.borrow_and_update().clone();
            Some((Ok::<_, Infallible>(event), (answers, stop)))
        });
        let headers = [
            (header::CONTENT_TYPE, "text/event-stream"),
            (header::CACHE_CONTROL, "no-cache"),
        ];
        Some((headers, Body::from_stream(events)).into_response())
    }

    /// Answers a query until nobody follows it.
    async fn keep(self: Arc<Self>, query: Query, request: GetStatusRequest, view: Arc<Answers>) {
        loop {
            let turn = self.turn.lock().await;
            if self.is_left(&query, &view) {
                return;
            }
            let (asked, began) = (query.clone(), Instant::now());
            let own = self.state.look(move |state| state.answer(&asked)).await;
            let (turn, master) = match own.is_master {
                true => (Some(turn), None),
                false => {
                    // No other view waits for another server.
                    drop(turn);
                    let until = began + EVERY;
                    (None, self.others.master_of(&own, &request, until).await)
                }
            };
            let event = move |_: &ServerState| {
                let answer = super::rendered(&shown(own, master))?;
                Some(Bytes::from(format!("data: {answer}\n\n")))
            };
            if let Some(event) = self.state.look(event).await {
                view.send_replace(event);
            }
            if turn.is_some() {
                sleep((began.elapsed() * REST).min(EVERY)).await;
            }
            drop(turn);
            sleep(EVERY).await;
        }
    }

    /// Forgets a view that nobody follows. Returns whether that is so.
    fn is_left(&self, query: &Query, view: &Answers) -> bool {
        let mut views = self.views.lock();
        let is_left = view.receiver_count() == 0;
        if is_left {
            views.remove(query);
        }
        is_left
    }
}

/// Returns the status to show: of a candidate, with what its master holds.
fn shown(own: Status, master: Option<Status>) -> Status {
    let Some(master) = master else {
        return own;
    };
    Status {
        resources: master.resources,
        next_token: master.next_token,
        children: master.children,
        conflicts: master.conflicts,
        learning_remaining_ms: master.learning_remaining_ms,
        resources_count: master.resources_count,
        leases_count: master.leases_count,
        clients_count: master.clients_count,
        waiting_count: master.waiting_count,
        ..own
    }
}
