//! `doorward status`: what the server holds, and why.

mod client_search;
mod decisions;
mod limits;
mod reasoned_table;
mod rules;
mod states;
pub(crate) mod tables;
mod tree;

use std::collections::BTreeSet;
use std::io::{self, Write};

use doorward_proto::STATUS_SCHEMA_VERSION;
use doorward_proto::admin::v1 as admin;
use doorward_proto::admin::v1::{
    EtcdStatus, GetStatusResponse as Status, LeaseStatus, ResourceStatus,
};
use doorward_session::visible::{self, line};

use crate::caller::MasterCaller;
use crate::common::{Common, Output};
use crate::failure::{Failure, Result};
use crate::flags::StatusFlags;
use crate::granted::span;
use crate::output::{self, Out};
use crate::status::tables::{WIDE, resources_table, waits_for_parent, write_leases};
use crate::status::tree::{write_children, write_own_lease, write_parent};
use crate::templates::table;
use doorward_pages::terminal::Tone;

/// Leases that are listed of a resource that was named.
const LEASES_LISTED: u32 = 100;

pub(crate) async fn run(common: &Common, flags: &StatusFlags) -> Result {
    let caller = MasterCaller::new(common)?;
    let usual = flags.resource.as_ref().map_or(0, |_| LEASES_LISTED);
    let leases_max = flags.leases.unwrap_or(usual);
    if let Some(client) = &flags.client {
        return client_search::run(common, &caller, flags, client).await;
    }
    let request = admin::GetStatusRequest {
        resource_id: flags.resource.clone().unwrap_or_default(),
        leases_max,
        // A table has a line about them in any case.
        limits: flags.limits || common.output != Output::Json,
        without_resources: flags.limits || flags.templates,
        templates: flags.templates,
        ..admin::GetStatusRequest::default()
    };
    let mut status = caller.status(request, flags.here).await?;
    if flags.limits {
        // Earlier versions list them in spite of what they are asked.
        status.resources.clear();
        if status.limits.is_empty() {
            return Err(does_not_say(&status, "limits"));
        }
    }
    if flags.templates && status.templates.is_empty() && status.templates_count > 0 {
        return Err(does_not_say(&status, "templates"));
    }
    // The output follows this program's schema, whatever the server's version.
    status.schema_version = STATUS_SCHEMA_VERSION;
    output::print(common, &status, |out| {
        write(out, &status, (flags, common.output), leases_max > 0)
    })?;
    if let (Some(resource), []) = (&flags.resource, status.resources.as_slice()) {
        return Err(no_leases(&caller, resource, &status, flags.here).await);
    }
    Ok(())
}

fn write(
    out: &mut Out<impl Write>,
    status: &Status,
    (flags, output): (&StatusFlags, Output),
    has_leases: bool,
) -> io::Result<()> {
    if output == Output::Name && flags.templates {
        let templates = status.templates.iter();
        return output::names(out, templates.map(|it| &it.identifier_glob));
    }
    if output == Output::Name {
        return output::names(out, status.resources.iter().map(|it| &it.resource_id));
    }
    write_head(out, status)?;
    if flags.templates {
        if status.parent.is_some() {
            let then = "these count if it sends no algorithm";
            writeln!(out, "the parent decides; {then}")?;
        }
        return table::of(&status.templates, out.palette).write(out);
    }
    if flags.limits {
        return limits::write_table(out, &status.limits);
    }
    let asked = flags.resource.as_deref();
    if asked.is_none() {
        decisions::write_table(out, &status.rule_decisions)?;
    }
    let in_detail = asked.is_some() || has_leases;
    write_resources(out, status, asked, (in_detail, output == Output::Wide))
}

/// Returns the failure for a server that does not say something.
fn does_not_say(status: &Status, what: &str) -> Failure {
    let (node, version) = (&status.node, &status.version);
    let problem = format!("{node} {version} does not say its {what}; it may be an older server");
    Failure::No(problem)
}

/// Returns the failure for a resource without leases, with similar names.
async fn no_leases(caller: &MasterCaller, resource: &str, status: &Status, here: bool) -> Failure {
    let where_else = match &status.master_address {
        Some(master) if !status.is_master => format!(" here; the master is at {master}"),
        _ => String::new(),
    };
    let mut message = format!("no leases of {resource} are out{where_else}");
    // The answer is known by now; the rest is help.
    let all = caller.status(admin::GetStatusRequest::default(), here);
    let held = all.await.map_or_else(|_| Vec::new(), |all| all.resources);
    let names: Vec<&str> = held.iter().map(|it| it.resource_id.as_str()).collect();
    if let Some(near) = doorward_documents::near(resource, &names) {
        message += &format!("; did you mean {near}?");
    }
    match status.template_match.as_ref().map(|it| &it.glob) {
        Some(Some(glob)) => {
            message += &format!(
                ". A client that asks for it may get some: the template {glob:?} matches it"
            );
        }
        Some(None) => {
            message += ". No template matches it: requests for it are refused until one is added";
        }
        None => {}
    }
    Failure::No(message)
}

/// Prints the server's own lines, and an empty line.
fn write_head(out: &mut Out<impl Write>, status: &Status) -> io::Result<()> {
    let mastership = match (&status.master_address, status.is_master) {
        (_, true) => out.paint(Tone::Good, "master"),
        (Some(address), false) => {
            out.paint(Tone::Partial, "not the master") + ", which is at " + &line(address)
        }
        (None, false) => out.paint(Tone::Bad, "no master is known"),
    };
    let epoch = status.epoch.map(|it| format!(", epoch {it}"));
    let epoch = epoch.unwrap_or_default();
    let (version, up) = (line(&status.version), span(status.uptime_ms));
    let node = out.paint(Tone::Strong, &line(&status.node));
    writeln!(out, "{node} {version}: {mastership}{epoch}, up for {up}")?;
    if let Some(etcd) = &status.etcd {
        write_etcd(out, etcd)?;
    }
    write_parent(out, status)?;
    let (count, source) = (status.templates_count, line(&status.templates_source));
    let plural = if count == 1 { "" } else { "s" };
    writeln!(out, "{count} template{plural} from {source}")?;
    for (what, problem) in [
        ("newer templates", &status.templates_problem),
        ("changed certificates, lists or tokens", &status.tls_problem),
    ] {
        let Some(problem) = problem else { continue };
        let refused = out.paint(Tone::Bad, &format!("{what} were REFUSED"));
        writeln!(out, "{refused}, those read before stay in force:")?;
        for line in problem.lines() {
            writeln!(out, "  {}", visible::line(line))?;
        }
    }
    if status.is_exposed {
        let exposed = out.paint(Tone::Partial, "exposed");
        writeln!(out, "{exposed}: callers on a network need no identity")?;
    }
    rules::write_lines(out, status)?;
    for conflict in &status.conflicts {
        let two = out.paint(Tone::Bad, "TWO LIVE PROCESSES");
        let (kind, holder) = (line(&conflict.kind), line(&conflict.holder));
        let ago = span(conflict.age_ms);
        let outcome = match conflict.kind.as_str() {
            "client" => "each has a share of its own",
            _ => "the later one is refused",
        };
        writeln!(
            out,
            "{two} ask as the {kind} {holder}, seen {ago} ago: {outcome}; give each a name of its own, or stop one"
        )?;
    }
    if let Some(states) = &status.states {
        states::write_line(out, states)?;
    }
    for child in status.children.iter().filter(|it| it.state == "gone") {
        let (tone, state) = crate::tree::state_of_child(child);
        let (child, state) = (line(&child.child), out.paint(tone, &state));
        writeln!(out, "child server {child}: {state}")?;
    }
    limits::write_line(out, &status.limits)?;
    writeln!(out)
}

/// Prints the resources.
fn write_resources(
    out: &mut Out<impl Write>,
    status: &Status,
    asked: Option<&str>,
    (in_detail, is_wide): (bool, bool),
) -> io::Result<()> {
    if status.resources.is_empty() {
        if let Some(left) = status.learning_remaining_ms.map(span) {
            let learning = out.paint(Tone::Partial, "learning mode");
            let then = "a client without a lease gets nothing";
            writeln!(out, "{learning}: for up to {left} more, {then}")?;
        }
        return match asked {
            // The error says it.
            Some(_) => Ok(()),
            None => writeln!(out, "no leases are out"),
        };
    }
    let extra = if is_wide { WIDE } else { &[] };
    resources_table(status.resources.iter(), extra, out.palette).write(out)?;
    if in_detail {
        for resource in &status.resources {
            write_resource(out, resource)?;
        }
    }
    Ok(())
}

/// How the election is doing.
fn write_etcd(out: &mut Out<impl Write>, etcd: &EtcdStatus) -> io::Result<()> {
    let age = span(etcd.age_ms);
    match (&etcd.problem, etcd.mastership_remaining_ms) {
        (None, Some(_)) => {
            let confirmed = etcd.mastership_confirmed_ms.map(span);
            let confirmed = confirmed.map(|ago| format!("; mastership confirmed {ago} ago"));
            let confirmed = confirmed.unwrap_or_default();
            writeln!(out, "elected{confirmed}; etcd reachable")
        }
        (None, None) => writeln!(out, "not elected; etcd reachable for {age}"),
        (Some(problem), left) => {
            let down = out.paint(Tone::Bad, "etcd is NOT reachable");
            writeln!(out, "{down} for {age}: {}", line(problem))?;
            match left.map(span) {
                Some(left) => writeln!(out, "  this server stops being the master in {left}"),
                None => Ok(()),
            }
        }
    }
}

/// Everything that is known of a resource, and of those who hold it.
fn write_resource(out: &mut Out<impl Write>, resource: &ResourceStatus) -> io::Result<()> {
    let id = out.paint(Tone::Strong, &line(&resource.resource_id));
    let about = match resource.description.as_str() {
        "" => String::new(),
        description => format!(": {}", line(description)),
    };
    writeln!(out, "\n{id}{about}")?;
    if let Some(budget) = &resource.budget {
        writeln!(out, "budget: {}", tables::used(budget, resource.capacity))?;
    }
    if let Some(lease) = &resource.own_lease {
        write_own_lease(out, lease, !waits_for_parent(resource))?;
    }
    if !resource.children.is_empty() {
        write_children(out, &resource.children)?;
    }
    // Leases of child servers stand in their own table.
    let children: BTreeSet<&str> = resource.children.iter().map(|c| c.child.as_str()).collect();
    let is_listed =
        |lease: &&LeaseStatus| lease.kind == "server" && children.contains(lease.holder.as_str());
    let leases = resource.leases.iter().filter(|it| !is_listed(it));
    let leases: Vec<_> = leases.map(|it| (None, it)).collect();
    if !leases.is_empty() {
        write_leases(out, &leases)?;
    }
    let listed = (resource.children.len() + leases.len()) as u64;
    let left = resource.leases_count.saturating_sub(listed);
    if left > 0 {
        writeln!(out, "and {left} more; --leases lists more")?;
    }
    Ok(())
}
