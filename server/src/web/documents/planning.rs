//! The plan of a text of templates: this server asks the master of its node, and then the servers below it.

use std::sync::Arc;
use std::time::Duration;

use doorward_documents::warnings::{InForceBefore, Warning, warnings};
use doorward_documents::{Kind as _, Located, PROBLEMS_SHOWN_MAX};
use doorward_pages::numbers;
use doorward_proto::admin::v1::plans_client::PlansClient;
use doorward_proto::admin::v1::plans_server::Plans as _;
use doorward_proto::admin::v1::{PlanRequest, PlanResponse};
use doorward_proto::plan::TreePlan;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::time::Instant;
use tonic::{Request, Status};

use crate::rpc::MESSAGE_BYTES_MAX;
use crate::rpc::plans::PlansService;
use crate::status::ServerState;
use crate::web::Site;

/// Longest time for a plan through the tree.
const PATIENCE: Duration = Duration::from_secs(8);

/// Answers of one server that are read for a plan.
const PAGES_MAX: usize = 100;

/// Servers that are asked at the same time.
const AT_ONCE_MAX: usize = 16;

impl Site {
    /// Plans templates through the tree.
    pub(super) async fn plan(&self, text: String) -> Result<Value, Status> {
        let until = Instant::now() + PATIENCE;
        let request = PlanRequest {
            templates: Some(text.clone()),
            ..PlanRequest::default()
        };
        let mut answer = self.pages(None, request.clone(), until).await?;
        if let Some(master) = answer.master_address.take() {
            answer = self.pages(Some(&master), request.clone(), until).await?;
        }
        if !answer.is_master || answer.node != self.state.node_name() {
            let problem = "no master of this node is known; plan again";
            return Err(Status::unavailable(problem));
        }
        let mut plan = TreePlan::of_root(answer, request);
        loop {
            let questions = plan.questions();
            if questions.is_empty() {
                break;
            }
            let asked = questions.into_iter().map(async |question| {
                let address = question.address.ok_or("it has not said where it is")?;
                let answer = self.pages(Some(&address), question.request, until).await;
                let answer = answer.map_err(|status| status.message().to_owned())?;
                let is_master = answer.is_master.then_some(answer);
                is_master.ok_or_else(|| format!("no master is at {address}"))
            });
            let answers = stream::iter(asked).buffered(AT_ONCE_MAX);
            plan.take(answers.collect::<Vec<_>>().await);
        }
        let missing = plan.missing(numbers::span);
        let resources = plan.resources;
        let look = move |state: &ServerState| {
            let in_force = state.node().look(|node, _| node.templates().clone());
            let located = Located::parse("templates", text.as_bytes()).unwrap_or_default();
            let before = InForceBefore {
                templates: Some(&in_force),
                in_use: &resources,
                unknown: missing.as_deref(),
                was_in_force: false,
            };
            let warnings = warnings(&located, &before);
            let warnings = warnings.iter().take(PROBLEMS_SHOWN_MAX);
            let warnings = warnings.map(Warning::to_json);
            let warnings: Vec<Value> = warnings.collect();
            // One list of a resource replaces another. Texts and numbers: none of them fails.
            let resources: Vec<_> = resources.iter().flat_map(serde_json::to_value).collect();
            (missing, resources, warnings)
        };
        let (missing, resources, warnings) = self.state.look(look).await;
        Ok(json!({
            "node": plan.node,
            "unchanged": plan.unchanged,
            "missing": missing,
            "resources": resources,
            "warnings": warnings,
        }))
    }

    /// Returns the whole answer of a server, or of this one.
    async fn pages(
        &self,
        address: Option<&str>,
        mut request: PlanRequest,
        until: Instant,
    ) -> Result<PlanResponse, Status> {
        let mut all = self.page(address, &request, until).await?;
        for _page in 0..PAGES_MAX {
            let Some(token) = all.next_token.take() else {
                return Ok(all);
            };
            request.token = token;
            all.append(self.page(address, &request, until).await?);
        }
        let advice = "the plan is too large for a page; `doorward templates diff` makes it";
        Err(Status::out_of_range(advice))
    }

    async fn page(
        &self,
        address: Option<&str>,
        request: &PlanRequest,
        until: Instant,
    ) -> Result<PlanResponse, Status> {
        let Some(address) = address else {
            let own = PlansService(Arc::clone(&self.state));
            let answer = own.plan(Request::new(request.clone())).await?;
            return Ok(answer.into_inner());
        };
        let call = async |channel| {
            let plans = PlansClient::new(channel);
            let mut plans = plans.max_decoding_message_size(MESSAGE_BYTES_MAX);
            plans.plan(request.clone()).await
        };
        let answer = self.others.ask(address, until, call).await;
        answer.map_err(Status::unavailable)
    }
}
