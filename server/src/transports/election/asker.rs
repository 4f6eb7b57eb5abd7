//! Sends a candidate's requests to etcd, and returns the answers.

use doorward_engine::node::reload::ActiveTemplates;
use doorward_etcd::layout::NodeKeys;
use doorward_etcd::{Error, EtcdConnection};
use doorward_session::candidate::store::{EtcdRequest, LeaseId, Op, OpAnswer};
use etcd_client::{Client, LeaseGrantResponse};
use tracing::debug;

use super::history::History;
use super::values;
use crate::clock::Clock;

/// Sends requests to etcd, one at a time.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) keys: NodeKeys,
    pub(super) connection: EtcdConnection,
    pub(super) history: History,
    pub(super) clock: Clock,
}

/// Answer to a request, and the problem if it failed.
pub(super) struct EtcdAnswer {
    pub(super) answer: OpAnswer,
    pub(super) problem: Option<String>,
}

impl Asker {
    /// Sends a request and returns its answer. Without a request, waits for ever. Cancel safe: etcd may or may not have
    /// executed the request.
    pub(super) async fn answer(
        &mut self,
        asking: Option<EtcdRequest>,
        active: &ActiveTemplates,
    ) -> EtcdAnswer {
        let Some(asking) = asking else {
            return std::future::pending().await;
        };
        let within = asking.within;
        let answered = if within < self.connection.call_timeout() {
            let asked = tokio::time::timeout(within, self.ask(asking.op, active)).await;
            match asked {
                Ok(answered) => answered,
                Err(_) => {
                    self.connection.leave();
                    return EtcdAnswer {
                        answer: OpAnswer::Failed,
                        problem: Some(format!("etcd does not answer within {within:?}")),
                    };
                }
            }
        } else {
            self.ask(asking.op, active).await
        };
        match answered {
            Ok(answer) => EtcdAnswer {
                answer,
                problem: None,
            },
            Err(Error::LeaseGone) => EtcdAnswer {
                answer: OpAnswer::LeaseGone,
                problem: None,
            },
            Err(error) => {
                debug!(%error, "the election is not asked");
                EtcdAnswer {
                    answer: OpAnswer::Failed,
                    problem: Some(error.to_string()),
                }
            }
        }
    }

    async fn ask(&mut self, op: Op, active: &ActiveTemplates) -> Result<OpAnswer, Error> {
        match op {
            Op::Probe => {
                let key = self.keys.master();
                self.connection
                    .call("get", async move |client: &mut Client| {
                        client.get(key, None).await
                    })
                    .await?;
                Ok(OpAnswer::Probed)
            }
            Op::Grant(ttl) => {
                let ttl = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
                let granted: LeaseGrantResponse = self
                    .connection
                    .call("grant a lease", async move |client: &mut Client| {
                        client.lease_grant(ttl, None).await
                    })
                    .await?;
                let ttl = std::time::Duration::from_secs(granted.ttl().unsigned_abs());
                Ok(OpAnswer::Granted(LeaseId(granted.id()), ttl))
            }
            Op::Renew(lease) => {
                // Each renewal has a stream of its own: a kept stream may be dead without telling.
                self.connection
                    .call("renew a lease", async move |client: &mut Client| {
                        client.lease_keep_alive(lease.0).await
                    })
                    .await?;
                Ok(OpAnswer::Renewed)
            }
            Op::Revoke(lease) => {
                self.connection
                    .call("revoke a lease", async move |client: &mut Client| {
                        client.lease_revoke(lease.0).await
                    })
                    .await?;
                Ok(OpAnswer::Revoked)
            }
            Op::Transact(what, txn) => {
                let txn = values::txn(&self.keys, &txn);
                let answer = self
                    .connection
                    .call(what, async move |client: &mut Client| client.txn(txn).await)
                    .await?;
                let now = self.clock.now();
                Ok(OpAnswer::Transacted(values::txn_answer(
                    &self.keys, &answer, now,
                )))
            }
            Op::ReadHistory(until) => {
                let until = self.clock.instant(until);
                let longest = self
                    .history
                    .longer_leases(active.templates(), &mut self.connection, until)
                    .await?;
                Ok(OpAnswer::History(longest))
            }
        }
    }
}
