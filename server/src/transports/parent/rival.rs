//! The parent's other servers, while the asked one does not answer.
//!
//! A server that hangs would cost its whole timeout. So the others are tried in parallel. Only a Discovery goes to more
//! than one of them.

use std::future::{Future, pending};
use std::pin::Pin;

use doorward_proto::doorman as wire;
use doorward_proto::doorman::capacity_client::CapacityClient;
use doorward_session::address::Address;
use doorward_session::parent_session::CONNECT_TIMEOUT;
use doorward_session::race::{self, HEAD_START};
use doorward_tls::dialer::Dialer;
use tonic::Code;
use tonic::transport::Endpoint;

use crate::transports::parent::link::DISCOVERY_BYTES_MAX;

/// Ends with the first server that answers; otherwise never.
pub(super) type Rival = Pin<Box<dyn Future<Output = Address> + Send>>;

/// Returns a rival that never answers: there are no other servers.
pub(super) fn none() -> Rival {
    Box::pin(pending())
}

/// Tries the servers, after a head start for the asked one.
pub(super) fn find(dialer: Dialer, others: Vec<Address>) -> Rival {
    let answers = move |other| answers(dialer.clone(), other);
    let attempts = others.into_iter().map(answers);
    Box::pin(race::rival(attempts, || tokio::time::sleep(HEAD_START)))
}

/// Returns the address if its server knows the master, or is too old to tell it. The session bounds the time.
async fn answers(dialer: Dialer, address: Address) -> Result<Address, ()> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(drop)?;
    let channel = dialer.channel(&endpoint.connect_timeout(CONNECT_TIMEOUT));
    let mut client = CapacityClient::new(channel).max_decoding_message_size(DISCOVERY_BYTES_MAX);
    match client.discovery(wire::DiscoveryRequest {}).await {
        Ok(answer) if knows_master(answer.get_ref()) => Ok(address),
        Err(status) if status.code() == Code::Unimplemented => Ok(address),
        _ => Err(()),
    }
}

fn knows_master(answer: &wire::DiscoveryResponse) -> bool {
    answer.is_master || !answer.mastership.master_address().is_empty()
}
