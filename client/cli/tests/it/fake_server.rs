//! A server that says what a test wants it to say, and remembers what it was asked.
//!
//! Each runs on a port and a thread of its own until it is dropped. A [`Play`] decides its answers.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use doorward_proto::admin::v1 as admin;
use doorward_proto::admin::v1::admin_server::{Admin, AdminServer};
use doorward_proto::admin::v1::plans_server::{Plans, PlansServer};
use doorward_proto::doorman;
use doorward_proto::doorman::capacity_server::{Capacity, CapacityServer};
use doorward_proto::doorman::release_result::Outcome;
use tokio::sync::oneshot;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// Master, as the fake server names it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Master {
    Myself,
    At(String),
    Unknown,
}

/// How the fake answers.
#[derive(Clone, Debug)]
pub(crate) struct Play {
    pub(crate) master: Master,
    /// Everyone gets what it wants, up to this.
    pub(crate) capacity: f64,
    pub(crate) refresh_in_ms: u64,
    /// Waits for its parent during so many requests for capacity.
    pub(crate) not_ready: usize,
    /// Outcomes of a release, resource by resource; the rest is released. An old server does not say.
    pub(crate) outcomes: Vec<Outcome>,
    /// Number of further requests for capacity during which it is in learning mode and grants nothing.
    pub(crate) learning: usize,
    /// Grants so many requests for capacity before it refuses any.
    pub(crate) granted: usize,
    /// Refuses every request for capacity after that.
    pub(crate) refused: Option<(doorman::refusal::Reason, &'static str)>,
    /// Why leases are no larger, as it says when it is not in learning mode.
    pub(crate) limited_by: Option<doorman::LimitedBy>,
    /// Rest of learning mode of a resource without leases.
    pub(crate) learning_remaining_ms: Option<u64>,
    /// Which template takes the resource that it is asked for. None: it is an older server.
    pub(crate) template_match: Option<admin::TemplateMatch>,
    /// The states of its machines. None: it is an older server.
    pub(crate) states: Option<admin::States>,
    /// Fails every call.
    pub(crate) failing: Option<tonic::Code>,
    /// Never answers.
    pub(crate) silent: bool,
    /// Speaks Doorman's protocol without our fields, and no admin service. It leaves out resources that begin with "no".
    pub(crate) old: bool,
    pub(crate) resources: Vec<admin::ResourceStatus>,
    /// Number of resources on a page. None: it is an older server, and lists all.
    pub(crate) page: Option<usize>,
    /// Refuses every page but the first one once, and says when to come back.
    pub(crate) busy_pages: bool,
    /// Two live processes under one name.
    pub(crate) conflicts: Vec<admin::ConflictStatus>,
    pub(crate) rule_decisions: Vec<admin::RuleDecisions>,
    /// Limits that it lists on request. Empty: it is an older server.
    pub(crate) limits: Vec<admin::LimitStatus>,
    pub(crate) children: Vec<admin::ChildServerStatus>,
    /// Of the previous release, it names no address and no children.
    pub(crate) is_previous: bool,
    pub(crate) node: &'static str,
    /// Absent: it is the root.
    pub(crate) parent: Option<admin::ParentStatus>,
    /// From the parent up to the root.
    pub(crate) ancestors: Vec<String>,
    pub(crate) is_in_cycle: bool,
    pub(crate) templates_source: String,
    /// Templates that it lists on request. Empty: it is an older server.
    pub(crate) templates: Vec<admin::TemplateStatus>,
    /// It makes no plans, as before this release.
    pub(crate) plans_nothing: bool,
    /// Its plan, whatever the change.
    pub(crate) plan: Vec<admin::PlannedResource>,
    /// End of every text of its own: messages, names, problems.
    pub(crate) tail: &'static str,
}

impl Default for Play {
    fn default() -> Self {
        Self {
            master: Master::Myself,
            capacity: 20.0,
            refresh_in_ms: 5_000,
            not_ready: 0,
            learning: 0,
            granted: 0,
            limited_by: None,
            outcomes: Vec::new(),
            refused: None,
            failing: None,
            learning_remaining_ms: None,
            template_match: None,
            states: None,
            silent: false,
            old: false,
            resources: Vec::new(),
            page: None,
            busy_pages: false,
            conflicts: Vec::new(),
            rule_decisions: Vec::new(),
            limits: Vec::new(),
            children: Vec::new(),
            is_previous: false,
            node: "fake",
            parent: None,
            ancestors: Vec::new(),
            is_in_cycle: false,
            templates_source: "templates.yaml".to_owned(),
            templates: Vec::new(),
            plans_nothing: false,
            plan: Vec::new(),
            tail: "",
        }
    }
}

/// Request to the fake server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Asked {
    Get(doorman::GetCapacityRequest),
    Release(doorman::ReleaseCapacityRequest),
    Status(admin::GetStatusRequest),
}

/// A fake server that runs.
pub(crate) struct FakeServer {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeServer {
    pub(crate) fn start(play: Play) -> Self {
        Self::start_with(|_| play)
    }

    /// Starts one whose play differs from the usual one.
    pub(crate) fn with(change: impl FnOnce(&mut Play)) -> Self {
        let mut play = Play::default();
        change(&mut play);
        Self::start(play)
    }

    pub(crate) fn start_with(play: impl FnOnce(&str) -> Play) -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").unwrap(), play)
    }

    pub(crate) fn start_on(listener: TcpListener, play: impl FnOnce(&str) -> Play) -> Self {
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let actor = Actor {
            play: play(&address),
            address: address.clone(),
            asked: asked.clone(),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || serve(actor, listener, stopped));
        Self {
            address,
            asked,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Returns all requests so far, in order.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The requests for capacity among it.
    pub(crate) fn gets(&self) -> Vec<doorman::GetCapacityRequest> {
        let get = |asked| match asked {
            Asked::Get(request) => Some(request),
            _ => None,
        };
        self.asked().into_iter().filter_map(get).collect()
    }

    /// The releases among it.
    pub(crate) fn releases(&self) -> Vec<doorman::ReleaseCapacityRequest> {
        let release = |asked| match asked {
            Asked::Release(request) => Some(request),
            _ => None,
        };
        self.asked().into_iter().filter_map(release).collect()
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there has been printed.
            let _ = thread.join();
        }
    }
}

fn serve(actor: Actor, listener: TcpListener, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let with_admin = !actor.play.old;
    let with_plans = with_admin && !actor.play.plans_nothing;
    let serving = async {
        let incoming = TcpListenerStream::new(tokio::net::TcpListener::from_std(listener).unwrap());
        tonic::transport::Server::builder()
            .add_service(CapacityServer::new(actor.clone()))
            .add_optional_service(with_plans.then(|| PlansServer::new(actor.clone())))
            .add_optional_service(with_admin.then(|| AdminServer::new(actor)))
            .serve_with_incoming(incoming)
            .await
            .unwrap();
    };
    runtime.block_on(async {
        tokio::select! {
            () = serving => {}
            _ = stopped => {}
        }
    });
}

#[derive(Clone)]
struct Actor {
    play: Play,
    address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Actor {
    /// Remembers the question; fails or falls silent if that is the play.
    async fn hear(&self, asked: Option<Asked>) -> Result<(), Status> {
        self.asked.lock().unwrap().extend(asked);
        if self.play.silent {
            std::future::pending::<()>().await;
        }
        match self.play.failing {
            Some(code) => {
                let message = format!("the play says so{}", self.play.tail);
                Err(Status::new(code, message))
            }
            None => Ok(()),
        }
    }

    /// Whether it is asked this for the first time.
    fn is_asked_first(&self, request: &admin::GetStatusRequest) -> bool {
        let asked = self.asked.lock().unwrap();
        let same = |it: &&Asked| matches!(it, Asked::Status(it) if it == request);
        asked.iter().filter(same).count() == 1
    }

    /// Returns the mastership in an answer of a server that is not the master.
    fn elsewhere(&self) -> Option<doorman::Mastership> {
        let master_address = match &self.play.master {
            Master::Myself => return None,
            Master::At(address) => Some(address.clone()),
            Master::Unknown => None,
        };
        Some(doorman::Mastership {
            master_address,
            epoch: None,
        })
    }

    fn lease(&self, wants: f64) -> doorman::Lease {
        let old = self.play.old;
        doorman::Lease {
            granted_by: None,
            // Far in the future; only old peers are believed by it.
            expiry_time: 4_000_000_000,
            refresh_interval: 5,
            capacity: wants.min(self.play.capacity),
            expires_in_ms: (!old).then_some(60_000),
            refresh_in_ms: (!old).then_some(self.play.refresh_in_ms),
        }
    }
}

#[tonic::async_trait]
impl Capacity for Actor {
    async fn discovery(
        &self,
        _: Request<doorman::DiscoveryRequest>,
    ) -> Result<Response<doorman::DiscoveryResponse>, Status> {
        self.hear(None).await?;
        let myself = doorman::Mastership {
            master_address: Some(self.address.clone()),
            epoch: Some(7),
        };
        Ok(Response::new(doorman::DiscoveryResponse {
            is_master: self.play.master == Master::Myself,
            mastership: self.elsewhere().unwrap_or(myself),
        }))
    }

    async fn get_capacity(
        &self,
        request: Request<doorman::GetCapacityRequest>,
    ) -> Result<Response<doorman::GetCapacityResponse>, Status> {
        let request = request.into_inner();
        self.hear(Some(Asked::Get(request.clone()))).await?;
        let mut answer = doorman::GetCapacityResponse {
            mastership: self.elsewhere(),
            ..Default::default()
        };
        if answer.mastership.is_some() {
            return Ok(Response::new(answer));
        }
        let gets = self.asked.lock().unwrap().clone();
        let gets = gets.iter().filter(|asked| matches!(asked, Asked::Get(_)));
        let count = gets.count();
        let waits = count <= self.play.not_ready;
        let learns = !waits && count <= self.play.not_ready + self.play.learning;
        let refused = self.play.refused.filter(|_| count > self.play.granted);
        let not_ready = (
            doorman::refusal::Reason::NotReady,
            "it waits for its parent",
        );
        for resource in request.resource {
            if let Some((reason, message)) = waits.then_some(not_ready).or(refused) {
                answer.refused.push(doorman::Refusal {
                    retry_in_ms: None,
                    resource_id: Some(resource.resource_id),
                    reason: Some(reason.into()),
                    message: Some(format!("{message}{}", self.play.tail)),
                });
            } else if !(self.play.old && resource.resource_id.starts_with("no")) {
                answer.response.push(doorman::ResourceResponse {
                    limited_by: match learns {
                        true => Some(doorman::LimitedBy::Learning.into()),
                        false => self.play.limited_by.map(Into::into),
                    },
                    learning_for_ms: learns.then_some(40_500),
                    resource_id: resource.resource_id,
                    gets: self.lease(if learns { 0.0 } else { resource.wants }),
                    safe_capacity: (!self.play.old).then_some(2.0),
                    ..Default::default()
                });
            }
        }
        Ok(Response::new(answer))
    }

    async fn get_server_capacity(
        &self,
        _: Request<doorman::GetServerCapacityRequest>,
    ) -> Result<Response<doorman::GetServerCapacityResponse>, Status> {
        Err(Status::unimplemented("a command line does not ask this"))
    }

    async fn release_capacity(
        &self,
        request: Request<doorman::ReleaseCapacityRequest>,
    ) -> Result<Response<doorman::ReleaseCapacityResponse>, Status> {
        let request = request.into_inner();
        self.hear(Some(Asked::Release(request.clone()))).await?;
        let outcomes = self.play.outcomes.iter().copied();
        let outcomes = outcomes.chain(std::iter::repeat(Outcome::Released));
        let result = request.resource_id.into_iter().zip(outcomes);
        let result = result.map(|(id, outcome)| doorman::ReleaseResult {
            unless_heard_ms: (outcome == Outcome::UnlessHeard).then_some(6_250),
            resource_id: Some(id),
            outcome: Some(outcome.into()),
        });
        Ok(Response::new(doorman::ReleaseCapacityResponse {
            result: result.filter(|_| !self.play.old).collect(),
            mastership: self.elsewhere(),
        }))
    }
}

#[tonic::async_trait]
impl Plans for Actor {
    async fn plan(
        &self,
        _: Request<admin::PlanRequest>,
    ) -> Result<Response<admin::PlanResponse>, Status> {
        self.hear(None).await?;
        let gone = self.play.children.iter();
        Ok(Response::new(admin::PlanResponse {
            is_master: self.play.master == Master::Myself,
            node: format!("{}{}", self.play.node, self.play.tail),
            templates_source: format!("{}{}", self.play.templates_source, self.play.tail),
            resources: self.play.plan.clone(),
            gone_children: gone.map(|it| it.child.clone()).collect(),
            ..admin::PlanResponse::default()
        }))
    }
}

#[tonic::async_trait]
impl Admin for Actor {
    #[allow(clippy::too_many_lines, reason = "a status has many fields")]
    async fn get_status(
        &self,
        request: Request<admin::GetStatusRequest>,
    ) -> Result<Response<admin::GetStatusResponse>, Status> {
        let request = request.into_inner();
        self.hear(Some(Asked::Status(request.clone()))).await?;
        if self.play.busy_pages && !request.token.is_empty() && self.is_asked_first(&request) {
            let mut status = Status::resource_exhausted("it has been looked at enough");
            let wait = "1".parse().unwrap();
            status.metadata_mut().insert("grpc-retry-pushback-ms", wait);
            return Err(status);
        }
        let master_address = match self.elsewhere() {
            Some(elsewhere) => elsewhere.master_address,
            None => Some(self.address.clone()),
        };
        let wanted = |resource: &&admin::ResourceStatus| {
            request.resource_id.is_empty() || request.resource_id == resource.resource_id
        };
        let mut resources: Vec<_> = self.play.resources.iter().filter(wanted).cloned().collect();
        let mut next_token = None;
        if let Some(page) = self.play.page {
            let limit = page.min(usize::try_from(request.limit).unwrap());
            resources.retain(|it| it.resource_id > request.token);
            let last = resources.get(limit).and_then(|_| resources.get(limit - 1));
            next_token = last.map(|it| it.resource_id.clone());
            resources.truncate(limit);
        }
        for resource in &mut resources {
            resource
                .leases
                .truncate(usize::try_from(request.leases_max).unwrap());
        }
        Ok(Response::new(admin::GetStatusResponse {
            limits: match (request.limits, self.play.tail) {
                (false, _) => Vec::new(),
                (true, "") => self.play.limits.clone(),
                (true, tail) => vec![admin::LimitStatus {
                    name: format!("leases{tail}"),
                    description: format!("leases{tail}"),
                    flag: format!("--leases-max{tail}"),
                    used: Some(1),
                    max: Some(2),
                    ..Default::default()
                }],
            },
            learning_remaining_ms: self.play.learning_remaining_ms,
            template_match: self.play.template_match.clone(),
            conflicts: self.play.conflicts.clone(),
            rule_decisions: self.play.rule_decisions.clone(),
            address: self.address.repeat(usize::from(!self.play.is_previous)),
            children: self.play.children.clone(),
            node: format!("{}{}", self.play.node, self.play.tail),
            version: format!("1.2.3{}", self.play.tail),
            is_master: self.play.master == Master::Myself,
            master_address,
            epoch: Some(7),
            uptime_ms: 65_000,
            templates_source: format!("{}{}", self.play.templates_source, self.play.tail),
            templates_count: 1,
            templates: match request.templates {
                true => self.play.templates.clone(),
                false => Vec::new(),
            },
            resources,
            next_token,
            parent: self.play.parent.clone(),
            ancestors: self.play.ancestors.clone(),
            is_in_cycle: self.play.is_in_cycle,
            etcd: (!self.play.tail.is_empty()).then(|| admin::EtcdStatus {
                problem: Some(self.play.tail.to_owned()),
                age_ms: 1,
                mastership_remaining_ms: Some(1),
                ..admin::EtcdStatus::default()
            }),
            templates_problem: Some(self.play.tail)
                .filter(|it| !it.is_empty())
                .map(str::to_owned),
            states: match self.play.tail {
                "" => self.play.states.clone(),
                tail => Some(admin::States {
                    parent_session: Some(tail.to_owned()),
                    election: Some(tail.to_owned()),
                    child_streams: [(tail.to_owned(), 1)].into(),
                    learning: tail.to_owned(),
                }),
            },
            ..admin::GetStatusResponse::default()
        }))
    }
}
