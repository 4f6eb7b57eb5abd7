//! Documents that leave nothing of what is in force: an empty file is as quickly written as read.

use std::collections::BTreeSet;

use doorward_engine::templates::Templates;
use doorward_engine::templates::glob::Glob;

use super::{TemplateWarning, WarningKind};

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
    Some(TemplateWarning {
        kind: WarningKind::Emptied,
        about: None,
        message: message.to_owned(),
        weight: 0.0,
    })
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
