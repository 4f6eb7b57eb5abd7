//! Whether a server of the parent is its master, asked before anything else is.
//!
//! Who has seen a master of one epoch does not go back to one of an older epoch: that one has lost
//! its mastership and may not know. An epoch that is absent says nothing: the server is of the old
//! kind, or its node has no election.

use std::time::Duration;

use doorward_proto::doorman as wire;
use doorward_proto::doorman::capacity_client::CapacityClient;
use tonic::Code;
use tonic::transport::Channel;

use super::End;
use super::problem::told_by;

/// What is wrong with a server of an older epoch.
pub(super) const OUT_OF_DATE: &str = "its mastership is out of date";

/// The masterships that were heard of.
#[derive(Debug, Default)]
pub(super) struct Masterships {
    /// The newest epoch.
    epoch: u64,
}

impl Masterships {
    /// Asks a server whether it is the master.
    ///
    /// # Errors
    ///
    /// How the connection ends if it is not, or does not answer in time.
    pub(super) async fn check(&mut self, channel: Channel, timeout: Duration) -> Result<(), End> {
        let mut client = CapacityClient::new(channel);
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
        if self.heed(&answer.mastership) {
            Ok(())
        } else {
            Err(End::Broken(OUT_OF_DATE.to_owned()))
        }
    }

    /// Takes note of what was told. Returns whether it is up to date.
    pub(super) fn heed(&mut self, told: &wire::Mastership) -> bool {
        let epoch = told.epoch.unwrap_or(self.epoch);
        let is_up_to_date = epoch >= self.epoch;
        self.epoch = self.epoch.max(epoch);
        is_up_to_date
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_goes_back_to_an_older_epoch() {
        let mut masterships = Masterships::default();
        for (epoch, is_up_to_date) in [
            (None, true),
            (Some(5), true),
            (Some(5), true),
            (Some(4), false),
            (None, true),
            (Some(4), false),
            (Some(6), true),
            (Some(5), false),
        ] {
            let told = wire::Mastership {
                master_address: None,
                epoch,
            };
            assert_eq!(masterships.heed(&told), is_up_to_date, "{epoch:?}");
        }
    }
}
