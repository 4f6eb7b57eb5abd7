//! What `doorward status` says of the states of a server's machines.

use std::collections::BTreeMap;
use std::io::{self, Write};

use doorward_proto::admin::v1 as admin;
use doorward_session::visible::line;
use serde::Serialize;

use crate::palette::{Palette, Tone};
use crate::status::some;

/// The states of a server's machines, by name.
#[derive(Serialize)]
pub(super) struct StatesStatus {
    /// Absent: this is the root.
    parent_session: Option<String>,
    /// Absent: there is no election.
    election: Option<String>,
    /// How many there are in each state.
    child_streams: BTreeMap<String, u64>,
    learning: String,
}

impl StatesStatus {
    /// A line of all of them.
    pub(super) fn write(&self, out: &mut impl Write, palette: Palette) -> io::Result<()> {
        let mut told = Vec::new();
        if let Some(state) = &self.parent_session {
            told.push(format!("parent session {}", line(state)));
        }
        if let Some(state) = &self.election {
            told.push(format!("election {}", line(state)));
        }
        told.push(format!("learning {}", line(&self.learning)));
        let streams = self.child_streams.iter().filter(|(_, count)| **count > 0);
        let streams: Vec<_> = streams
            .map(|(state, count)| format!("{count} {}", line(state)))
            .collect();
        told.push(match streams.as_slice() {
            [] => "no child streams".to_owned(),
            streams => format!("child streams {}", streams.join(" and ")),
        });
        let title = palette.paint(Tone::Quiet, "states");
        writeln!(out, "{title}: {}", told.join(", "))
    }
}

impl From<admin::States> for StatesStatus {
    fn from(states: admin::States) -> Self {
        let streams = states.child_streams.into_iter();
        Self {
            parent_session: some(states.parent_session),
            election: some(states.election),
            child_streams: streams.map(|it| (it.state, it.count)).collect(),
            learning: states.learning,
        }
    }
}
