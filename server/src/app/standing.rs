//! Brings the election's standings into force, and shows them on the board and in the log.

use std::sync::Arc;

use doorward_engine::node::mastership::{Mastership, Term};
use doorward_session::candidate::state::CandidateState;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use crate::clock;
use crate::election::{Running, Standing};
use crate::rpc::streams_handle::StreamsHandle;
use crate::status::Board;
use crate::status::sessions::Machine;

/// Task that follows the election.
pub(super) struct Following {
    board: Arc<Board>,
    standings: watch::Receiver<Standing>,
    masterships: watch::Receiver<(u64, Mastership)>,
}

impl Following {
    /// Brings the present standing into force.
    pub(super) fn begin(board: &Arc<Board>, election: &Running) -> Self {
        let mut masterships = board.node().masterships();
        let mut standings = election.standings();
        apply_standing(board, &standings.borrow_and_update());
        announce(board, &masterships.borrow_and_update().1);
        Self {
            board: Arc::clone(board),
            standings,
            masterships,
        }
    }

    /// Follows the election from then on. Returns the tasks that bring standings into force: a shutdown stops them
    /// first.
    pub(super) fn go_on(
        self,
        election: &Running,
        streams: &Arc<StreamsHandle>,
        background: &mut JoinSet<()>,
    ) -> JoinSet<()> {
        let (mut standings, mut masterships) = (self.standings, self.masterships);
        let mut obeying = JoinSet::new();
        obeying.spawn({
            let board = Arc::clone(&self.board);
            async move {
                while standings.changed().await.is_ok() {
                    apply_standing(&board, &standings.borrow_and_update());
                }
                debug!("mastership is settled for good");
            }
        });
        background.spawn({
            let (board, streams) = (Arc::clone(&self.board), Arc::clone(streams));
            async move {
                while masterships.changed().await.is_ok() {
                    let (begun, mastership) = masterships.borrow_and_update().clone();
                    announce(&board, &mastership);
                    streams.end_older(begun);
                }
            }
        });
        if let Some(mut states) = election.states() {
            show(&self.board, *states.borrow_and_update());
            let board = Arc::clone(&self.board);
            background.spawn(async move {
                while states.changed().await.is_ok() {
                    show(&board, *states.borrow_and_update());
                }
            });
        }
        if let Some(mut contact) = election.contact() {
            self.board.post_etcd(contact.borrow_and_update().clone());
            let board = self.board;
            background.spawn(async move {
                while contact.changed().await.is_ok() {
                    board.post_etcd(contact.borrow_and_update().clone());
                }
            });
        }
        obeying
    }
}

/// Brings a standing into force.
pub(super) fn apply_standing(board: &Board, standing: &Standing) {
    let pages = match standing {
        Standing::Elsewhere { pages, .. } => pages.as_ref().map(ToString::to_string),
        Standing::Alone | Standing::Master(_) | Standing::Unknown => None,
    };
    board.post_master_pages(pages);
    let node = board.node();
    let time = |time| node.clock().time(clock::instant_of(time));
    node.change(|node, now| match standing {
        Standing::Alone => node.handle_mastership(Mastership::Master { epoch: None }, now),
        Standing::Master(won) => {
            let term = Term {
                epoch: won.epoch,
                vacant_since: won.vacant_since.map(time),
                longer_leases: won.longer_leases,
                valid_until: time(won.valid_until),
            };
            node.handle_term(term, now)
        }
        Standing::Elsewhere { address, epoch, .. } => {
            let follower = Mastership::Elsewhere {
                master_address: address.to_string(),
                epoch: Some(*epoch),
            };
            node.handle_mastership(follower, now)
        }
        Standing::Unknown => node.handle_mastership(Mastership::Unknown, now),
    });
}

/// Shows the state of this server in its election.
fn show(board: &Board, state: CandidateState) {
    let machine = Machine::new(state, &CandidateState::ALL, CandidateState::as_str);
    board.sessions().post_election(machine);
}

/// Logs a new master.
fn announce(board: &Board, mastership: &Mastership) {
    match mastership {
        Mastership::Master { epoch } => info!(epoch, "this server is the master"),
        Mastership::Elsewhere {
            master_address,
            epoch,
        } => {
            info!(master_address, epoch, "another server is the master");
        }
        Mastership::Unknown if board.is_stopping() => {}
        Mastership::Unknown if board.node().masterships().borrow().0 == 0 => {
            info!("waiting for the election");
        }
        Mastership::Unknown => warn!("no master is known"),
    }
}
