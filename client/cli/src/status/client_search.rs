//! `doorward status --client`: the leases of one client, or of several that a pattern names, over all resources.

use doorward_engine::templates::glob::Glob;
use doorward_proto::STATUS_SCHEMA_VERSION;
use doorward_proto::admin::v1::GetStatusRequest;
use doorward_session::visible::line;

use crate::caller::MasterCaller;
use crate::common::{Common, Output};
use crate::failure::{Failure, Result};
use crate::flags::StatusFlags;
use crate::output;
use crate::status::tables::write_leases;

/// Leases of one resource that are read at most.
const LEASES_MAX: u32 = 10_000;

pub(super) async fn run(
    common: &Common,
    caller: &MasterCaller,
    flags: &StatusFlags,
    client: &str,
) -> Result {
    // The parts between what means more than itself.
    let parts = client.split(['*', '?', '[', ']', '\\']);
    let longest = parts.max_by_key(|part| part.len());
    let request = GetStatusRequest {
        resource_id: flags.resource.clone().unwrap_or_default(),
        leases_max: flags.leases.unwrap_or(LEASES_MAX),
        holder: longest.unwrap_or_default().to_owned(),
        ..GetStatusRequest::default()
    };
    let mut status = caller.status(request, flags.here).await?;
    // The server searches a part of the name. Of the previous release, it lists all.
    for resource in &mut status.resources {
        let leases = &mut resource.leases;
        leases.retain(|it| it.kind == "client" && matches(client, &it.holder));
    }
    let resources = &mut status.resources;
    resources.retain(|it| !it.leases.is_empty());
    status.schema_version = STATUS_SCHEMA_VERSION;
    let found = &status.resources;
    let leases = found.iter().flat_map(|it| {
        let of = Some(it.resource_id.as_str());
        it.leases.iter().map(move |lease| (of, lease))
    });
    let leases: Vec<_> = leases.collect();
    output::print(common, &status, |out| match common.output {
        Output::Name => output::names(out, found.iter().map(|it| &it.resource_id)),
        _ if leases.is_empty() => Ok(()),
        _ => write_leases(out, &leases),
    })?;
    if found.is_empty() {
        let (node, client) = (&status.node, line(client));
        return Err(Failure::No(format!(
            "no client {client} holds anything at {node}; doorward explain looks below it, too"
        )));
    }
    Ok(())
}

/// Whether a name matches a pattern, in which a * stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    // The * of a glob stops at a slash, which means nothing in the name of a client.
    let plain = |text: &str| text.replace('/', ":");
    match Glob::parse(&plain(pattern)) {
        Ok(glob) if pattern.contains('*') => glob.matches(&plain(name)),
        _ => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        for (pattern, name, expected) in [
            ("web-1", "web-1", true),
            ("web-1", "web-11", false),
            ("web-*", "web-11", true),
            ("*-1", "web-11", false),
            ("*eb*1", "web-11", true),
            ("w*b*b", "wb", false),
            ("web*", "web/a/b", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
