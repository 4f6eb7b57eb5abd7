//! Two processes of one client name are two holders.
//!
//! A process that asks for the first time replaces the previous process of its name, which may have ended. If that one
//! does not ask when it should, it wants nothing any more, and its lease counts until it ends. If it does ask, it is a
//! holder like any other, and the server reports two live processes of one name.
//!
//! Until then both claims count, so that others make room for the new process. A process that replaced another one and
//! never asked again is an exception: restarts in a loop must not take the shares of others.

use crate::holders::{Slot, Standing};
use crate::id::HolderId;
use crate::messages::Conflict;
use crate::resource::Resource;
use crate::time::Time;

impl Resource {
    /// Notes that a new holder comes: it replaces the newest process of its name. Returns its standing.
    pub(super) fn replace_process(&mut self, holder: &HolderId) -> Standing {
        let before = self.ledger.newest_of_name(holder);
        let Some((slot, before)) = before.and_then(|slot| Some((slot, self.ledger.get(slot)?)))
        else {
            return Standing::Newest;
        };
        let is_waited_for = before.standing == Standing::Newest;
        self.ledger.replace(slot, is_waited_for);
        Standing::Restarted
    }

    /// Notes that a client's process asks again. If it was replaced by a process that is still there,
    /// [`Resource::take_conflict`] reports both.
    pub(super) fn hear_process(&mut self, slot: Slot, holder: &HolderId, now: Time) {
        match self.ledger.get(slot).map(|it| it.standing) {
            Some(Standing::Restarted) => {
                let newest = Standing::Newest;
                self.ledger.note(slot, |holding| holding.standing = newest);
            }
            Some(Standing::Replaced) if self.ledger.newest_of_name(holder).is_some() => {
                self.conflict = Some(Box::new(Conflict {
                    holder: HolderId::client(holder.name.clone(), None),
                    at: now,
                }));
            }
            Some(Standing::Newest | Standing::Replaced) | None => {}
        }
    }
}
