//! States of a server's machines in `doorward status`.

use std::io::{self, Write};

use doorward_proto::admin::v1::States;
use doorward_session::visible::line;

use crate::output::Out;
use doorward_pages::terminal::Tone;

/// A line of all of them.
pub(super) fn write_line(out: &mut Out<impl Write>, states: &States) -> io::Result<()> {
    let parts = states.listed().into_iter();
    let parts = parts.map(|(what, state)| format!("{what} {}", line(&state)));
    let mut parts: Vec<_> = parts.collect();
    if states.child_streams.values().all(|count| *count == 0) {
        parts.push("no child streams".to_owned());
    }
    let title = out.paint(Tone::Quiet, "states");
    writeln!(out, "{title}: {}", parts.join(", "))
}
