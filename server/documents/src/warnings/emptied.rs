//! Documents that leave nothing of what is in force: an empty file is as quickly written as read.

use std::collections::BTreeSet;

use doorward_engine::templates::Templates;
use doorward_engine::templates::glob::Glob;

use super::{InForceBefore, TemplateWarning, WarningKind};
use doorward_proto::plan::ResourcePlan;

/// Whether nothing is left. Other templates for all that was matched are something.
pub(super) fn finding(old: Option<&Templates>, new: &Templates) -> Option<TemplateWarning> {
    let message = if new.is_empty() {
        if old.is_some_and(Templates::is_empty) {
            return None;
        }
        "there are no templates: every request is refused, and leases that are out run down"
    } else if is_replaced(old?, new) {
        "none of the templates in force is among them: requests for other resources are refused, and \
         their leases run down"
    } else {
        return None;
    };
    let message = message.to_owned();
    Some(TemplateWarning::new(WarningKind::Emptied, None, message))
}

/// Whether clients hold resources that no template matches any more.
pub(super) fn unmatched(in_use: &[ResourcePlan], new: &Templates) -> Option<TemplateWarning> {
    let roots = in_use.iter().map(|plan| &plan.root);
    let mut unmatched = roots.filter(|root| root.planned_algorithm.is_none());
    let first = unmatched.next()?;
    let more = match unmatched.count() {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let id = &first.resource_id;
    // A glob that people take for one of all ids below it.
    let mut globs = new.iter().map(|it| it.identifier_glob.as_str());
    let meant = globs.find(|glob| {
        let start = glob.strip_suffix('*').filter(|start| start.ends_with('/'));
        start.is_some_and(|start| id.starts_with(start))
    });
    let advice = match meant {
        Some(glob) => {
            let levels = id.matches('/').count();
            let start = glob.trim_end_matches('*');
            let missing = levels.saturating_sub(start.matches('/').count());
            let other = format!("{start}{}*", "*/".repeat(missing));
            format!("the * of {glob:?} matches no /: add a template for {other:?}")
        }
        None => format!("keep a template for {id:?}"),
    };
    let clients = first.clients_count;
    let (s, verb) = if clients == 1 { ("", "s") } else { ("s", "") };
    let message = format!(
        "no template matches {id}{more}, which {clients} client{s} hold{verb}: its leases run down, and \
         requests are refused; {advice}"
    );
    Some(TemplateWarning::new(WarningKind::InUse, None, message))
}

/// Whether a template goes while it is not known who holds what it matches.
pub(super) fn unknown(before: &InForceBefore<'_>, new: &Templates) -> Option<TemplateWarning> {
    let (old, why) = (before.templates?, before.unknown?);
    let stays: BTreeSet<&str> = new.iter().map(|it| it.identifier_glob.as_str()).collect();
    let mut globs = old.iter().map(|it| it.identifier_glob.as_str());
    let gone = globs.find(|it| !stays.contains(it))?;
    let message = format!("the template {gone:?} goes, and its clients may be refused: {why}");
    Some(TemplateWarning::new(WarningKind::InUse, None, message))
}

fn is_replaced(old: &Templates, new: &Templates) -> bool {
    let globs: BTreeSet<&str> = new.iter().map(|it| it.identifier_glob.as_str()).collect();
    let stays = |glob: &str| globs.contains(glob);
    if old.is_empty() || old.iter().any(|it| stays(&it.identifier_glob)) {
        return false;
    }
    let new: Vec<Glob> = globs.iter().filter_map(|it| Glob::parse(it).ok()).collect();
    let is_covered = |glob: &str| {
        Glob::parse(glob).is_ok_and(|glob| new.iter().any(|covering| covering.covers(&glob)))
    };
    !old.iter().all(|it| is_covered(&it.identifier_glob))
}
