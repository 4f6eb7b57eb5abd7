//! The demonstration's tree as it is drawn: which server stands below which, where each client is
//! attached, and a line for each of them.
//!
//! Servers come in the order in which they are drawn, so parents before their children; clients
//! are dealt to the leaves in turn. Only names and places: what they have is in `figures`.

/// The servers, depth first.
pub(super) const SERVERS: [ServerPlace; 7] = [
    ServerPlace::new("root", None, ["", ""]),
    ServerPlace::new("eu", Some(0), ["├ ", "│ "]),
    ServerPlace::new("eu-1", Some(1), ["│ ├ ", "│ │ "]),
    ServerPlace::new("eu-2", Some(1), ["│ └ ", "│   "]),
    ServerPlace::new("us", Some(0), ["└ ", "  "]),
    ServerPlace::new("us-1", Some(4), ["  ├ ", "  │ "]),
    ServerPlace::new("us-2", Some(4), ["  └ ", "    "]),
];

/// Servers without children.
pub(super) const LEAVES: [usize; 4] = [2, 3, 5, 6];

/// A server in the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerPlace {
    pub(super) name: &'static str,
    /// Its parent's index. Absent: it is the root.
    pub(super) parent: Option<usize>,
    /// Branches that lead to its line, and past it to those of its clients.
    branches: [&'static str; 2],
}

impl ServerPlace {
    const fn new(name: &'static str, parent: Option<usize>, branches: [&'static str; 2]) -> Self {
        Self {
            name,
            parent,
            branches,
        }
    }

    /// Returns its branches and name.
    pub(super) fn label(&self) -> String {
        let [own, _] = self.branches;
        format!("{own}{}", self.name)
    }
}

/// Returns the servers that lease from this one.
pub(super) fn children(parent: usize) -> impl Iterator<Item = usize> {
    let places = (0..).zip(SERVERS);
    let children = places.filter(move |(_, server)| server.parent == Some(parent));
    children.map(|(index, _)| index)
}

/// The clients of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outline {
    pub(super) clients: Vec<ClientPlace>,
}

/// A client of a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientPlace {
    pub(super) name: String,
    /// The index of the server it asks.
    pub(super) leaf: usize,
}

impl Outline {
    /// These clients, dealt to the leaves.
    pub(super) fn new(clients: impl IntoIterator<Item = String>) -> Self {
        let dealt = clients.into_iter().zip(LEAVES.into_iter().cycle());
        let clients = dealt.map(|(name, leaf)| ClientPlace { name, leaf });
        Self {
            clients: clients.collect(),
        }
    }

    /// Returns the clients that ask this server, with their indices.
    pub(super) fn clients_of(&self, leaf: usize) -> impl Iterator<Item = (usize, &str)> {
        let places = self.clients.iter().enumerate();
        let of_leaf = places.filter(move |(_, client)| client.leaf == leaf);
        of_leaf.map(|(index, client)| (index, client.name.as_str()))
    }

    /// A line for each server and client, from the root down, with its branches and name. Indices of clients follow
    /// those of the servers.
    pub(super) fn lines(&self) -> Vec<(usize, String)> {
        let mut lines = Vec::new();
        for (index, server) in SERVERS.iter().enumerate() {
            lines.push((index, server.label()));
            let ([_, below], count) = (server.branches, self.clients_of(index).count());
            for (number, (client, name)) in (1..).zip(self.clients_of(index)) {
                let branch = if number == count { '└' } else { '├' };
                let label = format!("{below}{branch} {name}");
                lines.push((SERVERS.len() + client, label));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests;
