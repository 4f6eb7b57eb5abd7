//! Templates and rules on the page: their text, the plan of a change, and the change itself.
//!
//! Any caller who may read the page may plan. An operator may change, and so may a caller on this machine if the server
//! needs no identity, unless the request comes through a proxy.

mod planning;

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::{Extensions, HeaderMap};
use doorward::rules::version_of;
use doorward_documents::{Kind as _, Located};
use doorward_door::tasks::joined;
use doorward_engine::node::mastership::Mastership;
use doorward_proto::admin::v1 as wire;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tonic::Status;
use tracing::info;

use crate::admin::rules_service::{self, revision};
use crate::caller;
use crate::stored_place::{DocumentChange, StoredPlace, author};
use crate::web::{Refused, Site, origin};

/// Revisions on the page.
const REVISIONS_MAX: usize = 20;

/// Largest reason of a change, in characters.
const WHY_CHARS_MAX: usize = 500;

const SHADOW: &str = "Shadow templates are changed at their source.";

/// Headers that proxies add to requests of their callers.
const FORWARDED: [&str; 3] = ["forwarded", "x-forwarded-for", "via"];

/// A document. Its field names are those of a query and of a body.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    kind: DocumentKind,
    /// Of rules.
    #[serde(default)]
    domain: String,
    /// Number of an earlier version, whose text alone is shown.
    revision: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DocumentKind {
    Templates,
    Rules,
    /// They cannot be changed here.
    Shadow,
}

/// A text to plan or to write.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Edited {
    kind: DocumentKind,
    #[serde(default)]
    domain: String,
    text: String,
    /// Version on top of which it is written. Empty: there is no document.
    #[serde(default)]
    seen: String,
    #[serde(default)]
    why: String,
}

/// A document as it stands.
#[derive(Debug, Default, Serialize)]
pub(super) struct Shown {
    place: String,
    text: String,
    version: String,
    /// Why the caller may not change it.
    refusal: Option<String>,
    /// Whether this server knows tokens.
    takes_token: bool,
    /// The newest first.
    revisions: Vec<wire::RulesRevision>,
}

pub(super) type Answer<T> = Result<Json<T>, Refused>;

impl Site {
    fn place(&self, kind: DocumentKind, domain: &str) -> Result<StoredPlace, Status> {
        let missing = || match kind {
            DocumentKind::Shadow => "there are no shadow templates".to_owned(),
            _ => {
                let source = &self.state.templates_source;
                format!("templates of {source} change at the root, with --templates FILE")
            }
        };
        let place = match kind {
            DocumentKind::Rules => return self.rules.place(domain),
            DocumentKind::Templates => self.templates.as_ref(),
            DocumentKind::Shadow => self.state.shadow.get().map(|it| it.place()),
        };
        place.cloned().ok_or_else(|| Status::not_found(missing()))
    }

    /// Returns all problems of a text.
    async fn problems(&self, edited: &Edited) -> Vec<wire::RuleProblem> {
        let (domain, text) = (edited.domain.clone(), edited.text.clone());
        let turn = Arc::clone(&self.turn).lock_owned().await;
        if let DocumentKind::Rules = edited.kind {
            return rules_service::check(turn, domain, text).await;
        }
        let parse = move || {
            let _turn = turn;
            Located::parse("templates", text.as_bytes()).err()
        };
        let error = joined(tokio::task::spawn_blocking(parse)).await;
        let problems = error.map(|error| Located::problems(&error));
        let problems = problems.unwrap_or_default().into_iter();
        let problems = problems.map(|(line, message)| wire::RuleProblem { line, message });
        problems.collect()
    }

    /// Writes a text that has no problems. Returns its number in the history, if there is one.
    async fn write(
        &self,
        kind: DocumentKind,
        domain: String,
        change: DocumentChange,
    ) -> Result<Option<u64>, Status> {
        if let DocumentKind::Rules = kind {
            return self.rules.store()?.write(domain, change).await;
        }
        let place = self.place(kind, &domain)?;
        let mastership = self.state.node().mastership();
        if let (StoredPlace::File(_), Mastership::Elsewhere { master_address, .. }) =
            (&place, mastership)
        {
            let problem =
                format!("nothing was written: the templates of the master {master_address} count");
            return Err(Status::failed_precondition(problem));
        }
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let (_turn, number) = place.write(turn, change).await?;
        Ok(number)
    }
}

/// Returns the name of the caller, if it may change documents. Without the role, it must not come through a proxy: that
/// forwards for others, by a header or under another name.
fn writer(headers: &HeaderMap, extensions: &Extensions) -> Result<String, Status> {
    let who = caller::writer(extensions)?;
    let is_forwarded = FORWARDED.iter().any(|name| headers.contains_key(*name));
    if !caller::is_operator(extensions) && (is_forwarded || !origin::is_of_this_machine(headers)) {
        let problem = "this request comes through a proxy, or is for another host: give the token of an operator";
        return Err(Status::permission_denied(problem));
    }
    Ok(who)
}

pub(super) async fn show(
    State(site): State<Arc<Site>>,
    Query(named): Query<Named>,
    headers: HeaderMap,
    extensions: Extensions,
) -> Answer<Shown> {
    let place = site.place(named.kind, &named.domain)?;
    if let Some(number) = named.revision {
        let before = number.saturating_add(1);
        let found = place.history(&site.turn, before, 1).await?.pop();
        let found = found.filter(|it| it.number == number);
        let text = found.and_then(|it| it.version.ok()?.document);
        let none = || Status::not_found("there is no text of this revision");
        return Ok(Json(Shown {
            text: text.ok_or_else(none)?,
            ..Shown::default()
        }));
    }
    let stored = place.read(&site.turn).await?;
    let revisions = match place {
        StoredPlace::File(_) => Vec::new(),
        StoredPlace::Etcd(..) => place.history(&site.turn, u64::MAX, REVISIONS_MAX).await?,
    };
    let refusal = match named.kind {
        DocumentKind::Shadow => Some(SHADOW.to_owned()),
        _ => (writer(&headers, &extensions).err()).map(|it| it.message().to_owned()),
    };
    let (security, revisions) = (site.state.security.get(), revisions.into_iter());
    Ok(Json(Shown {
        place: place.to_string(),
        version: stored.as_deref().map(version_of).unwrap_or_default(),
        text: String::from_utf8_lossy(&stored.unwrap_or_default()).into_owned(),
        refusal,
        takes_token: security.is_some_and(|it| it.access().tokens.is_some()),
        revisions: revisions.map(|it| revision(it, false)).collect(),
    }))
}

pub(super) async fn plan(
    State(site): State<Arc<Site>>,
    Json(mut edited): Json<Edited>,
) -> Answer<Value> {
    if let DocumentKind::Shadow = edited.kind {
        let place = site.place(edited.kind, "")?;
        let stored = place.read(&site.turn).await?.unwrap_or_default();
        edited.text = String::from_utf8_lossy(&stored).into_owned();
    }
    let problems = site.problems(&edited).await;
    let plan = match edited.kind {
        DocumentKind::Templates | DocumentKind::Shadow if problems.is_empty() => {
            let busy = |_| Status::unavailable("another plan is being made; try again");
            let _turn = site.planning.try_lock().map_err(busy)?;
            Some(site.plan(edited.text).await?)
        }
        _ => None,
    };
    Ok(Json(json!({"problems": problems, "plan": plan})))
}

pub(super) async fn apply(
    State(site): State<Arc<Site>>,
    headers: HeaderMap,
    extensions: Extensions,
    Json(edited): Json<Edited>,
) -> Answer<Value> {
    let who = writer(&headers, &extensions)?;
    let what = match edited.kind {
        DocumentKind::Rules => format!("rules of {}", edited.domain),
        DocumentKind::Templates => "templates".to_owned(),
        DocumentKind::Shadow => return Err(Status::permission_denied(SHADOW).into()),
    };
    if let Some(wire::RuleProblem { line, message }) = site.problems(&edited).await.first() {
        let problem = format!("nothing was written: line {line}: {message}");
        return Err(Status::invalid_argument(problem).into());
    }
    let why: String = edited.why.trim().chars().take(WHY_CHARS_MAX).collect();
    let why = Some(why).filter(|why| !why.is_empty());
    let version = version_of(edited.text.as_bytes());
    let change = DocumentChange {
        text: Some(edited.text),
        seen_version: edited.seen,
        who: who.clone(),
        why: why.clone(),
    };
    let revision = site.write(edited.kind, edited.domain, change).await?;
    if revision.is_none() {
        // A file does not tell.
        let author = author(&who, why.as_deref());
        let note = format!("{what} written {author}");
        site.state.history().note(note);
    }
    info!(
        what,
        who, why, version, revision, "a document was changed on the page"
    );
    Ok(Json(json!({"version": version, "revision": revision})))
}
