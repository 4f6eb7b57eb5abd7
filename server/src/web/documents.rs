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
use doorward_engine::node::mastership::Mastership;
use doorward_proto::admin::v1 as wire;
use doorward_proto::admin::v1::rules_server::Rules as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tonic::{Request, Status};
use tracing::info;

use crate::admin::rules_service::{RulesService, revision};
use crate::caller;
use crate::status::ServerState;
use crate::stored_place::{DocumentChange, StoredPlace, author};
use crate::web::others::Others;
use crate::web::{Refused, origin};

/// Revisions on the page.
const REVISIONS_MAX: usize = 20;

/// Largest reason of a change, in characters.
const WHY_CHARS_MAX: usize = 500;

const SHADOW: &str = "Shadow templates are changed at their source.";

/// Headers that proxies add to requests of their callers.
const FORWARDED: [&str; 3] = ["forwarded", "x-forwarded-for", "via"];

/// Documents that the page may change.
#[derive(Clone, Debug)]
pub(super) struct Documents {
    state: Arc<ServerState>,
    others: Arc<Others>,
    /// None: the templates cannot be changed here.
    templates: Option<StoredPlace>,
    rules: RulesService,
    /// One text is read, parsed or written at a time.
    turn: Arc<Mutex<()>>,
    /// One plan is made at a time.
    planning: Arc<Mutex<()>>,
}

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

#[derive(Debug, Serialize)]
struct Problem {
    line: u64,
    message: String,
}

pub(super) type Answer<T> = Result<Json<T>, Refused>;

impl Documents {
    pub(super) fn new(
        state: Arc<ServerState>,
        others: Arc<Others>,
        templates: Option<StoredPlace>,
        rules: RulesService,
    ) -> Self {
        Self {
            state,
            others,
            templates,
            rules,
            turn: Arc::default(),
            planning: Arc::default(),
        }
    }

    fn templates(&self) -> Result<&StoredPlace, Status> {
        let source = self.state.templates_source();
        let refusal = || format!("templates of {source} change at the root, with --templates FILE");
        let place = self.templates.as_ref();
        place.ok_or_else(|| Status::not_found(refusal()))
    }

    async fn show_templates(&self) -> Result<Shown, Status> {
        let place = self.templates()?;
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let (turn, stored) = place.read(turn).await?;
        let revisions = match place {
            StoredPlace::File(_) => Vec::new(),
            StoredPlace::Etcd(..) => place.history(turn, u64::MAX, REVISIONS_MAX).await?.1,
        };
        Ok(Shown {
            place: self.state.templates_source().to_owned(),
            version: stored.as_deref().map(version_of).unwrap_or_default(),
            text: String::from_utf8_lossy(&stored.unwrap_or_default()).into_owned(),
            revisions: revisions
                .into_iter()
                .map(|it| revision(it, false))
                .collect(),
            ..Shown::default()
        })
    }

    async fn show_rules(&self, domain: String) -> Result<Shown, Status> {
        let get = wire::GetRulesRequest {
            domain: domain.clone(),
        };
        let found = self.rules.get(Request::new(get)).await?.into_inner();
        let document = found.document.unwrap_or_default();
        // A directory has no history.
        let revisions = self.revisions_of_rules(domain, 0, false).await;
        let mut revisions = revisions.unwrap_or_default();
        revisions.truncate(REVISIONS_MAX);
        Ok(Shown {
            place: format!("rules of {}", document.domain),
            text: document.text.unwrap_or_default(),
            version: document.version,
            revisions,
            ..Shown::default()
        })
    }

    async fn revisions_of_rules(
        &self,
        domain: String,
        before: u64,
        texts: bool,
    ) -> Result<Vec<wire::RulesRevision>, Status> {
        let asked = wire::RulesHistoryRequest {
            domain,
            before,
            texts,
        };
        let answer = self.rules.history(Request::new(asked)).await?;
        Ok(answer.into_inner().revisions)
    }

    /// Returns the text of an earlier version.
    async fn revision(&self, named: &Named, number: u64) -> Result<String, Status> {
        let before = number.saturating_add(1);
        let found = match named.kind {
            DocumentKind::Rules => {
                let domain = named.domain.clone();
                let found = self.revisions_of_rules(domain, before, true).await?;
                found.into_iter().next()
            }
            DocumentKind::Templates | DocumentKind::Shadow => {
                let turn = Arc::clone(&self.turn).lock_owned().await;
                let (_turn, mut found) = self.templates()?.history(turn, before, 1).await?;
                found.pop().map(|it| revision(it, true))
            }
        };
        let found = found.filter(|it| it.number == number);
        let text = found.and_then(|it| it.text);
        text.ok_or_else(|| Status::not_found("there is no text of this revision"))
    }

    fn show_shadow(&self) -> Result<Shown, Status> {
        let shadow = self.state.shadow.get();
        let shadow = shadow.ok_or_else(|| Status::not_found("there are no shadow templates"))?;
        let text = shadow.text();
        Ok(Shown {
            place: shadow.news().source,
            version: version_of(text.as_bytes()),
            text,
            refusal: Some(SHADOW.to_owned()),
            ..Shown::default()
        })
    }

    /// Checks that a text of templates may be written.
    async fn check(&self, edited: &Edited, place: &StoredPlace) -> Result<(), Status> {
        let mastership = self
            .state
            .node()
            .look(|node, now| node.mastership(now).clone());
        if let (StoredPlace::File(_), Mastership::Elsewhere { master_address, .. }) =
            (place, mastership)
        {
            let problem =
                format!("nothing was written: the templates of the master {master_address} count");
            return Err(Status::failed_precondition(problem));
        }
        match self.problems(edited).await?.first() {
            None => Ok(()),
            Some(Problem { line, message }) => {
                let problem = format!("nothing was written: line {line}: {message}");
                Err(Status::invalid_argument(problem))
            }
        }
    }

    /// Returns all problems of a text.
    async fn problems(&self, edited: &Edited) -> Result<Vec<Problem>, Status> {
        let text = edited.text.clone();
        match edited.kind {
            DocumentKind::Rules => {
                let domain = edited.domain.clone();
                let check = wire::CheckRulesRequest { domain, text };
                let checked = self.rules.check(Request::new(check)).await?.into_inner();
                let problems = checked.problems.into_iter().map(|it| Problem {
                    line: it.line,
                    message: it.message,
                });
                Ok(problems.collect())
            }
            DocumentKind::Templates | DocumentKind::Shadow => {
                let turn = Arc::clone(&self.turn).lock_owned().await;
                let parse = move || {
                    let _turn = turn;
                    Located::parse("templates", text.as_bytes()).err()
                };
                let parsed = tokio::task::spawn_blocking(parse).await;
                let error = parsed.map_err(|error| Status::internal(error.to_string()))?;
                let problems = error.map(|error| Located::problems(&error));
                let problems = problems.unwrap_or_default().into_iter();
                let problems = problems.map(|(line, message)| Problem { line, message });
                Ok(problems.collect())
            }
        }
    }
}

/// Returns the name of the caller, if it may change documents. Without the role, it must not come through a proxy: that
/// forwards for others, by a header or under another name.
fn writer(headers: &HeaderMap, extensions: &Extensions) -> Result<String, Status> {
    let who = caller::writer(extensions)?;
    let is_forwarded = FORWARDED.iter().any(|name| headers.contains_key(*name));
    if !caller::is_operator(extensions) && (is_forwarded || !origin::is_of_this_machine(headers)) {
        return Err(Status::permission_denied(
            "this request comes through a proxy, or is for another host: give the token of an operator",
        ));
    }
    Ok(who)
}

pub(super) async fn show(
    State(documents): State<Documents>,
    Query(named): Query<Named>,
    headers: HeaderMap,
    extensions: Extensions,
) -> Answer<Shown> {
    let refusal = writer(&headers, &extensions).err();
    let refusal = refusal.map(|status| status.message().to_owned());
    if let Some(number) = named.revision {
        let text = documents.revision(&named, number).await?;
        return Ok(Json(Shown {
            text,
            ..Shown::default()
        }));
    }
    let mut shown = match named.kind {
        DocumentKind::Templates => documents.show_templates().await?,
        DocumentKind::Rules => documents.show_rules(named.domain).await?,
        DocumentKind::Shadow => return Ok(Json(documents.show_shadow()?)),
    };
    let security = documents.state.security();
    shown.takes_token = security.is_some_and(|it| it.access().tokens.is_some());
    shown.refusal = refusal;
    Ok(Json(shown))
}

pub(super) async fn plan(
    State(documents): State<Documents>,
    Json(mut edited): Json<Edited>,
) -> Answer<Value> {
    if let DocumentKind::Shadow = edited.kind {
        edited.text = documents.show_shadow()?.text;
    }
    let problems = documents.problems(&edited).await?;
    let plan = match edited.kind {
        DocumentKind::Templates | DocumentKind::Shadow if problems.is_empty() => {
            let busy = |_| Status::unavailable("another plan is being made; try again");
            let _turn = documents.planning.try_lock().map_err(busy)?;
            Some(documents.plan(edited.text).await?)
        }
        _ => None,
    };
    Ok(Json(json!({"problems": problems, "plan": plan})))
}

pub(super) async fn apply(
    State(documents): State<Documents>,
    headers: HeaderMap,
    extensions: Extensions,
    Json(edited): Json<Edited>,
) -> Answer<Value> {
    let who = writer(&headers, &extensions)?;
    if let DocumentKind::Shadow = edited.kind {
        return Err(Status::permission_denied(SHADOW).into());
    }
    let why: String = edited.why.trim().chars().take(WHY_CHARS_MAX).collect();
    let why = Some(why).filter(|why| !why.is_empty());
    let version = version_of(edited.text.as_bytes());
    let what = match edited.kind {
        DocumentKind::Rules => format!("rules of {}", edited.domain),
        DocumentKind::Templates | DocumentKind::Shadow => "templates".to_owned(),
    };
    let revision = match edited.kind {
        DocumentKind::Rules => {
            let apply = wire::ApplyRulesRequest {
                domain: edited.domain,
                text: edited.text,
                seen_version: edited.seen,
                who: who.clone(),
                why: why.clone(),
            };
            let mut request = Request::new(apply);
            *request.extensions_mut() = extensions;
            documents.rules.apply(request).await?.into_inner().revision
        }
        DocumentKind::Templates | DocumentKind::Shadow => {
            let place = documents.templates()?;
            documents.check(&edited, place).await?;
            let change = DocumentChange {
                text: edited.text,
                seen_version: edited.seen,
                who: who.clone(),
                why: why.clone(),
            };
            let turn = Arc::clone(&documents.turn).lock_owned().await;
            place.write(turn, change).await?.1
        }
    };
    if revision.is_none() {
        // A file does not tell.
        let author = author(&who, why.as_deref());
        let text = format!("{what} written {author}");
        documents.state.history().note(text);
    }
    info!(
        what,
        who, why, version, revision, "a document was changed on the page"
    );
    Ok(Json(json!({"version": version, "revision": revision})))
}
