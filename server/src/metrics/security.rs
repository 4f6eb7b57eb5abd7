//! Metrics of TLS and identities.

use std::fmt;

use crate::metrics::families::{Families, flag, metrics};
use crate::status::ServerState;

/// Writes them.
pub(super) fn write(state: &ServerState, families: &mut Families<'_>) -> fmt::Result {
    let Some(security) = state.security.get() else {
        return Ok(());
    };
    let validities = security.validities().into_iter();
    let files = validities.map(|(path, it)| (path.display().to_string(), it));
    let files: Vec<_> = files.collect();
    let (mut begins, mut ends) = (Vec::new(), Vec::new());
    for (file, (begin, end)) in &files {
        begins.push(([("file", file.as_str())], begin.as_secs_f64()));
        ends.push(([("file", file.as_str())], end.as_secs_f64()));
    }
    let help = "Begin of the certificate in a file that ends first, since the Unix epoch";
    families.gauges("tls_certificate_start_timestamp_seconds", help, begins)?;
    let help = "First end of the certificates in a file, since the Unix epoch";
    families.gauges("tls_certificate_expiry_timestamp_seconds", help, ends)?;
    let problems = security.problems();
    let problems = problems.map(|(files, it)| ([("files", files)], flag(it.is_some())));
    let help = "1 if changed files are refused, and those read before stay in force";
    families.gauges("tls_files_refused", help, problems)?;
    for (name, help, count) in metrics! {
        /// Connections that were refused: a handshake failed, or was missing
        "tls_refused_connections": security.access().failures.count();
        /// Calls that were refused: their caller proved no identity, or lacks a role
        "calls_denied": security.access().denied.count();
    } {
        families.counter(name, help, count)?;
    }
    let help = "1 if callers on a network need no identity";
    families.gauge("tls_exposed", help, flag(security.is_exposed))
}
