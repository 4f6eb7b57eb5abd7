//! The demonstration's tree as it is drawn: which server stands below which, where each client is
//! attached, and a line for each of them.
//!
//! Servers come in the order in which they are drawn, so parents before their children; clients
//! are dealt to the leaves in turn. Only names and places: what they have is in `figures`.

/// The servers, each with its parent's place in this list. Depth first.
pub(super) const SERVERS: [(&str, Option<usize>); 7] = [
    ("root", None),
    ("eu", Some(0)),
    ("eu-1", Some(1)),
    ("eu-2", Some(1)),
    ("us", Some(0)),
    ("us-1", Some(4)),
    ("us-2", Some(4)),
];

/// Tree of servers and clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outline {
    pub(super) servers: Vec<ServerPlace>,
    pub(super) clients: Vec<ClientPlace>,
}

/// A server in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerPlace {
    pub(super) name: String,
    /// Its parent's index. Absent: it is the root.
    pub(super) parent: Option<usize>,
}

/// A client of a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientPlace {
    pub(super) name: String,
    /// The index of the server it asks.
    pub(super) leaf: usize,
}

/// Subject of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutlineEntry {
    /// The server of that index.
    Server(usize),
    /// The client of that index.
    Client(usize),
    /// Number of clients for which there is no room.
    More(usize),
}

/// A line of the drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutlineLine {
    pub(super) who: OutlineEntry,
    /// Branches and name.
    pub(super) label: String,
}

impl Outline {
    /// [`SERVERS`], and these clients dealt to its leaves.
    pub(super) fn new(clients: impl IntoIterator<Item = String>) -> Self {
        let servers = SERVERS.map(|(name, parent)| ServerPlace {
            name: name.to_owned(),
            parent,
        });
        let mut outline = Self {
            servers: servers.into(),
            clients: Vec::new(),
        };
        let leaves = outline.leaves();
        let dealt = clients.into_iter().zip(leaves.into_iter().cycle());
        outline.clients = dealt
            .map(|(name, leaf)| ClientPlace { name, leaf })
            .collect();
        outline
    }

    /// Returns the servers without children.
    pub(super) fn leaves(&self) -> Vec<usize> {
        (0..self.servers.len())
            .filter(|index| self.children(Some(*index)).next().is_none())
            .collect()
    }

    /// The servers that lease from this one; from none: the root.
    pub(super) fn children(&self, parent: Option<usize>) -> impl Iterator<Item = usize> {
        let places = self.servers.iter().enumerate();
        places
            .filter(move |(_, server)| server.parent == parent)
            .map(|(index, _)| index)
    }

    /// Returns the number of servers above this one.
    pub(super) fn depth(&self, server: usize) -> usize {
        let parent = self.servers.get(server).and_then(|place| place.parent);
        // A parent stands before its children, so this ends.
        parent.map_or(0, |parent| 1 + self.depth(parent))
    }

    /// The clients that ask this server.
    pub(super) fn clients_of(&self, leaf: usize) -> impl Iterator<Item = usize> {
        let places = self.clients.iter().enumerate();
        places
            .filter(move |(_, client)| client.leaf == leaf)
            .map(|(index, _)| index)
    }

    /// A line for each server and client, from the root down. If there is no room for all of them,
    /// every leaf shows as many of its clients as its part of the room takes, and how many more it
    /// has.
    pub(super) fn lines(&self, room: usize) -> Vec<OutlineLine> {
        let per_leaf = if self.servers.len() + self.clients.len() <= room {
            usize::MAX
        } else {
            let leaves = self.leaves().len().max(1);
            room.saturating_sub(self.servers.len()) / leaves
        };
        let mut lines = Vec::new();
        for root in self.children(None) {
            self.push_lines(root, "", "", per_leaf, &mut lines);
        }
        lines
    }

    /// The lines of a server and of all below it. `own` and `below` are the branches that lead to
    /// its line, and past it to those that follow.
    fn push_lines(
        &self,
        server: usize,
        own: &str,
        below: &str,
        clients_max: usize,
        lines: &mut Vec<OutlineLine>,
    ) {
        let Some(place) = self.servers.get(server) else {
            return;
        };
        lines.push(OutlineLine {
            who: OutlineEntry::Server(server),
            label: format!("{own}{}", place.name),
        });
        let children: Vec<usize> = self.children(Some(server)).collect();
        let clients: Vec<usize> = self.clients_of(server).collect();
        let mut shown: Vec<(OutlineEntry, String)> = Vec::new();
        // The last line has those that have none.
        let named = match clients.len() {
            count if count <= clients_max => count,
            _ => clients_max.saturating_sub(1),
        };
        for client in clients.iter().take(named) {
            let name = self.clients.get(*client).map(|place| place.name.clone());
            shown.push((OutlineEntry::Client(*client), name.unwrap_or_default()));
        }
        let more = clients.len() - named;
        if more > 0 && clients_max > 0 {
            shown.push((OutlineEntry::More(more), format!("… {more} more")));
        }
        let count = children.len() + shown.len();
        let branches = |position: usize| {
            if position + 1 == count {
                (format!("{below}└ "), format!("{below}  "))
            } else {
                (format!("{below}├ "), format!("{below}│ "))
            }
        };
        for (position, child) in children.iter().enumerate() {
            let (own, below) = branches(position);
            self.push_lines(*child, &own, &below, clients_max, lines);
        }
        for (position, (who, name)) in shown.into_iter().enumerate() {
            let (own, _) = branches(children.len() + position);
            let label = format!("{own}{name}");
            lines.push(OutlineLine { who, label });
        }
    }
}

/// How wide the longest label is, in characters.
pub(super) fn label_width(lines: &[OutlineLine]) -> usize {
    let widths = lines.iter().map(|line| line.label.chars().count());
    widths.max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
