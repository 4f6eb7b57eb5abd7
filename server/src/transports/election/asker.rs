//! Sends a candidate's requests to etcd, and returns the answers.

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::node::reload::ActiveTemplates;
use doorward_etcd::layout::NodeKeys;
use doorward_etcd::{Error, EtcdConnection};
use doorward_session::candidate::marks::WRITE_MARKS;
use doorward_session::candidate::store::{EtcdRequest, LeaseId, Op, OpAnswer, StoredMarks};
use etcd_client::Client;
use tracing::{debug, warn};

use super::history::History;
use super::marks::MarksReader;
use super::values::{self, renew};
use crate::clock::Clock;

/// Sends requests to etcd, one at a time.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) keys: NodeKeys,
    pub(super) connection: EtcdConnection,
    pub(super) history: History,
    pub(super) marks: MarksReader,
    pub(super) clock: Clock,
}

impl Asker {
    /// Sends a request. Returns its answer, and the problem if it failed. Without a request, waits for ever. Cancel
    /// safe: etcd may or may not have executed the request.
    pub(super) async fn answer(
        &mut self,
        asking: Option<EtcdRequest>,
        active: &ActiveTemplates,
    ) -> (OpAnswer, Option<String>) {
        let Some(asking) = asking else {
            return std::future::pending().await;
        };
        let within = asking.within;
        let writes_marks = matches!(asking.op, Op::Transact(WRITE_MARKS, _));
        let answered = if within < self.connection.call_timeout() {
            let asked = tokio::time::timeout(within, self.ask(asking.op, active)).await;
            let Ok(answered) = asked else {
                self.connection.leave();
                let problem = format!("etcd does not answer within {within:?}");
                return (OpAnswer::Failed, Some(problem));
            };
            answered
        } else {
            self.ask(asking.op, active).await
        };
        match answered {
            Ok(answer) => (answer, None),
            Err(Error::LeaseGone) => (OpAnswer::LeaseGone, None),
            Err(error @ Error::Refused { .. }) if writes_marks => {
                warn!(%error, "marks may not be written; after a change of the master, newcomers wait for a lease length");
                (OpAnswer::Refused, None)
            }
            Err(error) => {
                debug!(%error, "the election is not asked");
                (OpAnswer::Failed, Some(error.to_string()))
            }
        }
    }

    async fn ask(&mut self, op: Op, active: &ActiveTemplates) -> Result<OpAnswer, Error> {
        let (keys, clock, connection) = (&self.keys, self.clock, &mut self.connection);
        Ok(match op {
            Op::ReadMarks { lease, won, until } => {
                let until = clock.instant(until);
                let read = self.marks.read((won, lease), keys, connection, until);
                OpAnswer::Marks(match read.await {
                    Err(error @ Error::Refused { .. }) => {
                        warn!(%error, "the keys of marks may not be read; after a change of the master, newcomers \
                               wait for a lease length");
                        Some(Arc::new(StoredMarks {
                            is_refused: true,
                            ..StoredMarks::default()
                        }))
                    }
                    read => read?,
                })
            }
            Op::ReadHistory(until) => {
                let (until, templates) = (clock.instant(until), active.templates());
                let read = self.history.longer_leases(templates, connection, until);
                OpAnswer::History(read.await?)
            }
            Op::Probe => {
                connection.get("get", keys.master(), None).await?;
                OpAnswer::Probed
            }
            Op::Grant(ttl) => {
                let ttl = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
                let grant = async |client: &mut Client| client.lease_grant(ttl, None).await;
                let granted = connection.call("grant a lease", grant).await?;
                let ttl = Duration::from_secs(granted.ttl().unsigned_abs());
                OpAnswer::Granted(LeaseId(granted.id()), ttl)
            }
            Op::Renew(lease) => {
                let renew = async |client: &mut Client| renew(client.clone(), Some(lease)).await;
                connection.call("renew a lease", renew).await?;
                OpAnswer::Renewed
            }
            Op::Revoke(lease) => {
                let revoke = async |client: &mut Client| client.lease_revoke(lease.0).await;
                connection.call("revoke a lease", revoke).await?;
                OpAnswer::Revoked
            }
            Op::Confirm { lease, span, txn } => {
                let confirm = async |client: &mut Client| {
                    let own = renew(client.clone(), Some(lease));
                    let span = renew(client.clone(), span);
                    tokio::try_join!(client.txn(values::txn(keys, &txn)), own, span)
                };
                let (answer, (), ()) = connection.call("confirm a mastership", confirm).await?;
                OpAnswer::Transacted(values::txn_answer(keys, &answer, clock.now()))
            }
            Op::Transact(what, txn) => {
                let answer = connection.txn(what, values::txn(keys, &txn)).await?;
                OpAnswer::Transacted(values::txn_answer(keys, &answer, clock.now()))
            }
        })
    }
}
