//! Whether a server of the parent is its master, asked before anything else is.
//!
//! Who has seen a master of one epoch does not go back to one of an older epoch: that one has lost
//! its mastership and may not know. When the last lease of the parent is over, the newer epoch is
//! forgotten ([`EpochFilter`]): the parent's etcd may have been wiped or restored, and nothing is at
//! stake any more. An epoch that is absent says nothing: the server is of the old kind, or its node
//! has no election.

use std::sync::Arc;
use std::time::Duration;

use doorward_client::state::EpochFilter;
use doorward_proto::doorman as wire;
use doorward_proto::doorman::capacity_client::CapacityClient;
use tonic::Code;
use tonic::transport::Channel;
use tracing::warn;

use super::End;
use super::problem::told_by;
use crate::status::Board;

/// The largest word on who the master is, in bytes: an address and an epoch.
const DISCOVERY_BYTES_MAX: usize = 4 * 1024;

/// The masterships of the parent that were heard of.
#[derive(Debug)]
pub(super) struct Masterships {
    epochs: EpochFilter,
    board: Arc<Board>,
}

impl Masterships {
    /// For the node of a board; of its parent nothing is heard yet.
    pub(super) fn new(board: Arc<Board>) -> Self {
        Self {
            epochs: EpochFilter::default(),
            board,
        }
    }

    /// Asks a server whether it is the master.
    ///
    /// # Errors
    ///
    /// How the connection ends if it is not, or does not answer in time.
    pub(super) async fn check(&mut self, channel: Channel, timeout: Duration) -> Result<(), End> {
        let mut client =
            CapacityClient::new(channel).max_decoding_message_size(DISCOVERY_BYTES_MAX);
        let question = client.discovery(wire::DiscoveryRequest {});
        let answer = match tokio::time::timeout(timeout, question).await {
            Ok(Ok(answer)) => answer.into_inner(),
            // It is of a kind so old that it cannot say.
            Ok(Err(status)) if status.code() == Code::Unimplemented => return Ok(()),
            Ok(Err(status)) => return Err(End::Broken(told_by(&status))),
            Err(_) => return Err(End::Broken(format!("no answer within {timeout:?}"))),
        };
        if !answer.is_master {
            return Err(End::NotMaster(answer.mastership));
        }
        self.heed(&answer.mastership).map_err(End::Broken)
    }

    /// Takes note of what was told.
    ///
    /// # Errors
    ///
    /// What is wrong with it, if it is out of date.
    pub(super) fn heed(&mut self, told: &wire::Mastership) -> Result<(), String> {
        let Some(epoch) = told.epoch else {
            return Ok(());
        };
        let leases_last = || {
            self.board.node().read(|node, now| {
                let end = node.upstream_leases_end(now);
                end.map_or(Duration::ZERO, |end| end.since(now))
            })
        };
        match self.epochs.heed(epoch, leases_last) {
            Ok(None) => Ok(()),
            Ok(Some(forgotten)) => {
                warn!(
                    epoch,
                    forgotten,
                    "the parent's masterships have begun again: was its etcd wiped, or restored?"
                );
                self.board.count_parent_mastership_forgotten();
                Ok(())
            }
            Err(problem) => Err(problem.to_string()),
        }
    }
}
