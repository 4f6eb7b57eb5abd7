//! Answers that browsers follow: the status as server-sent events, once a second, and the whole tree. Browsers with the
//! same query share the work, and answers are made one at a time, with a rest after each. A candidate holds nothing, and
//! shows what its master holds.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use doorward_door::caller_id::CallerId;
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_stream::wrappers::WatchStream;
use tokio_util::sync::CancellationToken;
use tonic::Status as RpcStatus;

use crate::status::{Query, ServerState, Status};
use crate::web::others::Others;
use crate::web::tree::{PATIENCE, Walk};

const EVERY: Duration = Duration::from_secs(1);

/// Rest after an answer, by the time that it took.
const REST: u32 = 9;

/// Largest number of different queries that are followed.
const VIEWS_MAX: usize = 32;

/// Largest number of those that one caller has begun to follow.
const VIEWS_PER_CALLER_MAX: usize = 16;

/// Kind of the answers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Made {
    /// The status, as an event.
    Status,
    /// The servers of the tree. That takes longer, so it is made less often.
    Tree,
}

/// Queries that browsers follow, with the newest answer to each.
#[derive(Debug)]
pub(super) struct Views {
    made: Made,
    state: Arc<ServerState>,
    others: Arc<Others>,
    views: Mutex<Vec<View>>,
    /// One answer is made at a time.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct View {
    query: Query,
    /// Its first follower.
    caller: Option<CallerId>,
    /// Browsers share its bytes.
    answers: Arc<watch::Sender<Bytes>>,
    task: JoinHandle<()>,
}

impl Views {
    pub(super) fn new(made: Made, state: Arc<ServerState>, others: Arc<Others>) -> Arc<Self> {
        Arc::new(Self {
            made,
            state,
            others,
            views: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        })
    }

    /// Follows a query. The answer is empty at first.
    pub(super) fn follow(
        self: &Arc<Self>,
        query: Query,
        caller: Option<CallerId>,
    ) -> Result<watch::Receiver<Bytes>, RpcStatus> {
        let mut views = self.views.lock();
        views.retain(|it| !it.task.is_finished());
        if let Some(view) = views.iter().find(|it| it.query == query) {
            return Ok(view.answers.subscribe());
        }
        let followed = views.iter().filter(|it| it.answers.receiver_count() > 0);
        let own = followed.clone().filter(|it| it.caller == caller).count();
        if followed.count() >= VIEWS_MAX || own >= VIEWS_PER_CALLER_MAX {
            return Err(RpcStatus::unavailable("too many different views are open"));
        }
        let (answers, following) = watch::channel(Bytes::new());
        let answers = Arc::new(answers);
        let keep = Arc::clone(self).keep(query.clone(), Arc::clone(&answers));
        views.push(View {
            query,
            caller,
            answers,
            task: tokio::spawn(keep),
        });
        Ok(following)
    }

    /// Answers a query as long as browsers follow it.
    async fn keep(self: Arc<Self>, query: Query, answers: Arc<watch::Sender<Bytes>>) {
        loop {
            let mut turn = Some(self.turn.lock().await);
            if self.is_left(&query, &answers) {
                return;
            }
            let (asked, began) = (query.clone(), Instant::now());
            let own = self.state.look(move |state| state.answer(&asked)).await;
            let answer = match self.made {
                Made::Tree => {
                    let walk = Walk {
                        others: &self.others,
                        request: &query.request,
                        until: began + PATIENCE,
                    };
                    let places = walk.all(own).await;
                    let look = move |_: &ServerState| super::rendered(&places) + "\n";
                    self.state.look(look).await
                }
                Made::Status => {
                    let mut master = None;
                    if !own.is_master {
                        // No other view waits for another server.
                        turn = None;
                        let (request, until) = (&query.request, began + EVERY);
                        master = self.others.master_of(&own, request, until).await;
                    }
                    let event = move |_: &ServerState| {
                        format!("data: {}\n\n", super::rendered(&shown(own, master)))
                    };
                    self.state.look(event).await
                }
            };
            answers.send_replace(answer.into());
            let rest = began.elapsed() * REST;
            // Trees mostly wait for other servers, and need no rest between them.
            let (in_turn, then) = match (self.made, &turn) {
                (Made::Status, Some(_)) => (rest.min(EVERY), EVERY),
                (Made::Status, None) => (Duration::ZERO, EVERY),
                (Made::Tree, _) => (Duration::ZERO, rest.max(EVERY)),
            };
            sleep(in_turn).await;
            drop(turn);
            sleep(then).await;
        }
    }

    /// Forgets a view without followers. Returns whether that is so.
    fn is_left(&self, query: &Query, answers: &watch::Sender<Bytes>) -> bool {
        let mut views = self.views.lock();
        let is_left = answers.receiver_count() == 0;
        if is_left {
            views.retain(|it| it.query != *query);
        }
        is_left
    }
}

/// Returns answers as server-sent events, until `stop`.
pub(super) fn events(answers: watch::Receiver<Bytes>, stop: CancellationToken) -> Response {
    let events = WatchStream::new(answers).filter(|event| ready(!event.is_empty()));
    let events = events.take_until(stop.cancelled_owned());
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    let body = Body::from_stream(events.map(Ok::<_, Infallible>));
    (headers, body).into_response()
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
