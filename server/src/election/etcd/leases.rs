//! What a candidate of the root tells of the leases that may be out, and what it hears of them: by the
//! rules of [`lengths`](crate::election::lengths). And when it stands aside because clients would not
//! believe its epoch.

use std::time::Duration;

use doorward_clock::Instant;
use doorward_etcd::Error;
use doorward_etcd::directory::LeaseLengths;
use tracing::warn;

use super::campaign::Campaign;
use super::held::Lease;
use crate::election::lengths::Said;

impl Campaign {
    /// What a term says that is written now.
    pub(super) fn told_leases(&self, now: Instant) -> Option<LeaseLengths> {
        let next = self.next.as_ref().map(|change| &change.templates);
        self.lengths.as_ref().map(|lengths| lengths.told(next, now))
    }

    /// The longest lease that a predecessor may have left that said nothing of leases, if it is one. None:
    /// it is not known before the lease in etcd must be renewed.
    pub(super) async fn unsaid_leases(&mut self, lease: Lease) -> Result<Option<Duration>, Error> {
        let Some(lengths) = &self.lengths else {
            return Ok(Some(Duration::ZERO));
        };
        if self.past.said() != Said::Nothing {
            return Ok(Some(Duration::ZERO));
        }
        let until = lease.next_renewal();
        self.history
            .longer_leases(lengths.in_force(), &mut self.connection, until)
            .await
    }

    /// How long the longest lease may be that was out when the node became vacant, by templates other
    /// than those in force.
    pub(super) fn inherit(&mut self, vacant_since: Instant, unsaid: Duration) -> Duration {
        let Some(lengths) = &mut self.lengths else {
            return Duration::ZERO;
        };
        let longer = lengths
            .longer_leases(self.past.said(), unsaid)
            .max(self.past.lost_after(vacant_since))
            // What this server granted before it lost its last mastership.
            .max(lengths.older_after(vacant_since));
        lengths.inherit(vacant_since, longer);
        longer
    }

    /// Templates that wait are in force: etcd has confirmed what is told of them, or nobody decides
    /// anything here.
    pub(super) fn apply_next(&mut self) {
        let Some(next) = self.next.take() else {
            return;
        };
        let templates = next.templates.clone();
        next.apply();
        let Some(lengths) = &mut self.lengths else {
            return;
        };
        let Some(held) = &mut self.held else {
            lengths.change(templates, Instant::now());
            return;
        };
        let now = Instant::now();
        // One that decides has begun to learn, or not, by what was in force.
        let learned = lengths.in_force().learning_outlasts(&templates);
        // Until now, and by a predecessor until the node became vacant.
        let outlasts = lengths.change(templates, held.vacant_since.max(now));
        let longer = if held.begins <= now {
            learned
        } else {
            outlasts
        };
        held.longer_leases = held.longer_leases.max(longer);
    }

    /// If this server is not the master, templates count at once. If it is and etcd cannot be told,
    /// they wait until its mastership is over. One that is lost counts until then, too: the node may
    /// not have heard of it yet.
    pub(super) fn apply_if_nobody_decides(&mut self) {
        let until = self.decides_until;
        if until.is_none_or(|until| until <= Instant::now()) {
            self.apply_next();
        }
    }

    /// Another server has seen a higher epoch: etcd was restored from a backup, and whoever has seen
    /// that epoch as well does not believe ours. The key is given back, to be won again by a higher
    /// one. The term stays: for everybody else this server may still believe in it.
    pub(super) async fn stand_aside_if_too_low(&mut self) -> Result<(), Error> {
        let highest = self.past.highest_epoch();
        let Some(held) = self.held.filter(|held| held.created.epoch() < highest) else {
            return Ok(());
        };
        warn!(
            epoch = held.created.epoch(),
            highest, "etcd has gone back: another server has seen a higher epoch"
        );
        self.lose("its epoch is not the highest");
        let give_back = self.claim.give_back(held.created);
        self.transact("give a mastership back", give_back).await?;
        Ok(())
    }
}
