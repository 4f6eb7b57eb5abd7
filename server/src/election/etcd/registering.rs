//! Where a candidate is, and what it is: its own key, under its lease.

use doorward_etcd::Error;
use doorward_etcd::directory::{Registration, Servers};
use doorward_etcd::follow::Entry;
use etcd_client::{Client, PutOptions, ResponseHeader};

use super::campaign::Campaign;
use super::claim;
use super::held::Lease;

impl Campaign {
    /// Tells where we are.
    pub(super) async fn register(&mut self, lease: Lease) -> Result<(), Error> {
        let registration = self.registration();
        let key = self.claim.keys.server(&registration.address);
        if let Some((registered, since)) = &self.registered {
            let is_there = self.view().is_none_or(|view| {
                let entry = view.entries.get(&key);
                let is_ours = |entry: &Entry| self.claim.is_registered(entry, registered, lease.id);
                // A view of before says nothing.
                view.revision < *since || entry.is_some_and(is_ours)
            });
            if is_there && *registered == registration {
                return Ok(());
            }
        }
        let value = claim::json(&registration);
        let put = self
            .connection
            .call("register", async move |client: &mut Client| {
                let options = PutOptions::new().with_lease(lease.id);
                client.put(key, value, Some(options)).await
            })
            .await?;
        let since = put.header().map_or(0, ResponseHeader::revision);
        self.registered = Some((registration, since));
        Ok(())
    }

    fn registration(&self) -> Registration {
        let own = (self.candidate.place)();
        // Only the master speaks with the parent and the children, and knows.
        let of_master = self
            .view()
            .filter(|_| self.held.is_none())
            .and_then(|view| {
                let servers = Servers::of_view(&self.claim.keys, &view);
                let (master, _) = servers.master?;
                let mut all = servers.servers.into_iter();
                all.find(|server| server.address == master.address)
            });
        let (role, level) = of_master.map_or((own.role, own.level), |it| (it.role, it.level));
        Registration {
            node: self.candidate.node.clone(),
            address: self.candidate.address.clone(),
            http_address: self.candidate.http_address.clone(),
            server: self.claim.server.clone(),
            role,
            level,
            highest_epoch: Some(self.past.highest_epoch()).filter(|epoch| *epoch > 0),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}
