//! States of a server's machines in `doorward status`.

use std::io::{self, Write};

use doorward_proto::admin::v1::States;
use doorward_session::visible::line;

use doorward_pages::terminal::{Palette, Tone};

/// A line of all of them.
pub(super) fn write_line(
    out: &mut impl Write,
    states: &States,
    palette: Palette,
) -> io::Result<()> {
    let mut parts = Vec::new();
    if let Some(state) = &states.parent_session {
        parts.push(format!("parent session {}", line(state)));
    }
    if let Some(state) = &states.election {
        parts.push(format!("election {}", line(state)));
    }
    parts.push(format!("learning {}", line(&states.learning)));
    let streams = states.child_streams.iter().filter(|(_, count)| **count > 0);
    let streams: Vec<_> = streams
        .map(|(state, count)| format!("{count} {}", line(state)))
        .collect();
    parts.push(match streams.as_slice() {
        [] => "no child streams".to_owned(),
        streams => format!("child streams {}", streams.join(" and ")),
    });
    let title = palette.paint(Tone::Quiet, "states");
    writeln!(out, "{title}: {}", parts.join(", "))
}
