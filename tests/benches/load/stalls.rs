//! Waits of clients because of operators, scrapes and accidents. A client asks a full server all the time, in an open
//! loop. Its worst wait during an event is compared with the worst of a quiet time just before.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use doorward_documents::parse_duration;
use doorward_proto::admin::v1::{GetStatusRequest, GetStatusResponse, PlanRequest, PlanResponse};
use doorward_tests::etcd::Etcd;
use doorward_tests::processes::{freeze, thaw};
use doorward_tests::proxy::Proxy;
use tokio::sync::oneshot;
use tokio::task::{JoinSet, block_in_place};
use tokio::time::{Instant, sleep, sleep_until};

use crate::fill::{empty, fill, holders};
use crate::generator::due_at;
use crate::population::Population;
use crate::subject::{Place, Subject, Templates};
use crate::wire::{Failure, GET_STATUS, PLAN, Wire};

/// Time between two calls of the client.
const PACE: Duration = Duration::from_millis(2);

/// Answers whose making may keep clients waiting.
const PATHS: [&str; 4] = [
    "/metrics",
    "/status",
    "/tree?id=load/r-0000000",
    "/history?id=load/r-0000000",
];

/// An event that may make clients wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Event {
    /// Metrics, status and pages are read, and `GetStatus` and `Plan` are called.
    Looks,
    /// Clients release all leases.
    Released,
    /// Templates are read again, with many other globs before the one that matches.
    Reload,
    /// All resources change from `FAIR_SHARE` to `PRIORITY_BANDS`, or back, which moves all claims.
    ChangedKind,
    /// All leases expire, in the order of their grants.
    Expiry,
    /// All leases expire at once, after the server was stopped for a while.
    ExpiryAtOnce,
    /// The server loses its mastership, and all leases with it; then it becomes the master again.
    Mastership,
}

/// Sizes of the measurement.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Size {
    /// Events [default: all; mastership needs an etcd, see tests/install-etcd].
    events: Vec<Event>,

    /// Number of resources.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) resources: usize,

    /// Number of leases on them.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) leases: usize,

    /// Number of globs before the one that matches, after a reload.
    #[arg(long, default_value_t = 5_000)]
    pub(crate) globs: usize,

    /// Number of measurements of each event.
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: usize,

    /// Time for which the client is watched before and after an event.
    #[arg(long, default_value = "2s", value_parser = parse_duration)]
    pub(crate) window: Duration,

    /// Length of leases that must expire: longer than filling takes.
    #[arg(long, default_value = "30s", value_parser = parse_duration)]
    pub(crate) short_lease: Duration,
}

impl Size {
    /// Creates a small size of all events.
    pub(crate) fn small() -> Self {
        Self {
            events: Vec::new(),
            resources: 20,
            leases: 200,
            globs: 50,
            runs: 1,
            window: Duration::from_millis(300),
            short_lease: Duration::from_secs(3),
        }
    }

    fn has(&self, event: Event) -> bool {
        self.events.is_empty() || self.events.contains(&event)
    }

    /// Returns whether it needs an etcd.
    pub(crate) fn has_mastership(&self) -> bool {
        self.has(Event::Mastership)
    }

    /// Returns templates whose capacity is half of the wants.
    fn scarce(&self) -> Templates {
        let wanted = 10 * (self.leases / self.resources) as u64;
        Templates {
            capacity: (wanted / 2).max(1),
            ..Templates::FAIR
        }
    }
}

/// A full server, and the client that asks it.
struct Full {
    subject: Subject,
    holders: Arc<Population>,
    client: Wire,
    window: Duration,
}

/// Worst waits in each run: in a quiet time, and during an event.
#[derive(Default)]
struct Worst {
    quiet: Vec<Duration>,
    during: Vec<Duration>,
}

impl Full {
    async fn start(place: &Place, size: &Size, templates: Templates, flags: &[&str]) -> Self {
        let subject = Subject::server_with(place, templates, flags);
        Self {
            client: Wire::open(subject.address, None).await.unwrap(),
            holders: holders(size.leases, size.resources),
            subject,
            window: size.window,
        }
    }

    async fn fill(&self) {
        fill(self.subject.address, &self.holders).await;
    }

    /// Measures an event, and a quiet time before it.
    async fn measure(&mut self, worst: &mut Worst, happens: impl AsyncFnOnce(&mut Subject)) {
        sleep(self.window / 4).await;
        let quiet = worst_while(&self.client, self.window, async {}).await;
        let happens = happens(&mut self.subject);
        let during = worst_while(&self.client, self.window, happens).await;
        worst.quiet.push(quiet);
        worst.during.push(during);
    }
}

/// Returns the worst wait of a client while something happens, and for a time after it, because it may leave work.
async fn worst_while(wire: &Wire, after: Duration, happens: impl Future<Output = ()>) -> Duration {
    let client = Arc::new(Population::new("probe", 1, 1, 1));
    let begins = Instant::now();
    let mut due = due_at(begins, PACE, begins + Duration::from_secs(24 * 3_600));
    let (stop, mut stopped) = oneshot::channel::<()>();
    let wire = wire.clone();
    // A task of its own: what happens may block this one, and that is no wait for the server.
    let asking = tokio::spawn(async move {
        let mut calls = JoinSet::new();
        loop {
            let at = tokio::select! {
                at = due.recv() => at,
                _ = &mut stopped => None,
            };
            let Some(at) = at else {
                return calls;
            };
            let (wire, client) = (wire.clone(), Arc::clone(&client));
            calls.spawn(async move {
                match client.ask(&wire, 0).await {
                    // A server that is not the master says so at once.
                    Ok(()) | Err(Failure::Refused(_)) => at.elapsed(),
                    Err(failure) => panic!("{failure}"),
                }
            });
        }
    });
    happens.await;
    sleep(after).await;
    drop(stop);
    let waits = asking.await.unwrap().join_all().await;
    waits.into_iter().max().unwrap()
}

impl Worst {
    fn print(mut self, name: &str) {
        let [quiet, during] = [&mut self.quiet, &mut self.during].map(|all| {
            let runs = format!("{all:.2?}");
            all.sort();
            (all[all.len() / 2], runs)
        });
        println!(
            "{name:28} {:>10} {:>10} {:>10}   {}",
            format!("{:.2?}", quiet.0),
            format!("{:.2?}", during.0),
            format!("{:.2?}", during.0.saturating_sub(quiet.0)),
            during.1,
        );
    }
}

/// Measures all events, and prints them.
pub(crate) async fn measure(place: &Place, size: &Size) {
    println!(
        "{} resources, {} leases; the worst that a client sees that asks every {PACE:?}, median of {} runs\n\n{:28} \
         {:>10} {:>10} {:>10}   the worst of each run",
        size.resources, size.leases, size.runs, "", "baseline", "meanwhile", "beyond"
    );
    let of_full = [
        Event::Looks,
        Event::Released,
        Event::Reload,
        Event::ChangedKind,
    ];
    if of_full.iter().any(|event| size.has(*event)) {
        let shadow = tempfile::NamedTempFile::new().unwrap();
        let shadow = shadow.path();
        let flags = ["--shadow-templates", shadow.to_str().unwrap()];
        let mut full = Full::start(place, size, size.scarce(), &flags).await;
        full.fill().await;
        look(&mut full, size, shadow).await;
        change(&mut full, size).await;
    }
    for (event, name) in [
        (Event::Expiry, "all expire"),
        (Event::ExpiryAtOnce, "all expire at once"),
    ] {
        if size.has(event) {
            expiry(place, size, event).await.print(name);
        }
    }
    if size.has_mastership() {
        mastership(place, size).await;
    }
}

async fn look(full: &mut Full, size: &Size, shadow: &Path) {
    for path in PATHS.into_iter().filter(|_| size.has(Event::Looks)) {
        let mut worst = Worst::default();
        for _ in 0..size.runs {
            let get = async |subject: &mut Subject| {
                let answer = block_in_place(|| subject.started().get(path));
                assert!(answer.starts_with("HTTP/1.0 200"), "{path}: {answer:.200}");
            };
            full.measure(&mut worst, get).await;
        }
        worst.print(path);
    }
    if size.has(Event::Looks) {
        let mut worst = Worst::default();
        for _ in 0..size.runs {
            let get = async |subject: &mut Subject| {
                let wire = Wire::open(subject.address, None).await.unwrap();
                let request = GetStatusRequest::default();
                let answer: GetStatusResponse = wire.call(GET_STATUS, &request).await.unwrap();
                assert!(!answer.resources.is_empty());
            };
            full.measure(&mut worst, get).await;
        }
        worst.print("GetStatus");
        let halved = Templates {
            capacity: (size.scarce().capacity / 2).max(1),
            ..size.scarce()
        };
        let mut worst = Worst::default();
        for _ in 0..size.runs {
            let get = async |subject: &mut Subject| plan(subject, halved.document()).await;
            full.measure(&mut worst, get).await;
        }
        worst.print("Plan, all pages");
        let mut worst = Worst::default();
        for _ in 0..size.runs {
            let divide = async |_: &mut Subject| {
                std::fs::write(shadow, halved.document()).unwrap();
                // It is read within five seconds, and then divides each five seconds or less often.
                sleep(Duration::from_secs(12)).await;
            };
            full.measure(&mut worst, divide).await;
        }
        worst.print("shadow templates");
    }
}

/// Plans templates for all resources.
async fn plan(subject: &Subject, templates: String) {
    let wire = Wire::open(subject.address, None).await.unwrap();
    let mut request = PlanRequest {
        templates: Some(templates),
        ..PlanRequest::default()
    };
    loop {
        let answer: PlanResponse = match wire.call(PLAN, &request).await {
            Ok(answer) => answer,
            // It was looked at for long enough in this second.
            Err(Failure::Refused(_)) => {
                sleep(Duration::from_millis(250)).await;
                continue;
            }
            Err(failure) => panic!("{failure}"),
        };
        assert!(answer.resources.iter().all(|it| it.losing_count > 0));
        let Some(token) = answer.next_token else {
            return;
        };
        request.token = token;
    }
}

async fn change(full: &mut Full, size: &Size) {
    if size.has(Event::Released) {
        let mut worst = Worst::default();
        for _ in 0..size.runs {
            let holders = Arc::clone(&full.holders);
            let release = async |subject: &mut Subject| empty(subject.address, &holders).await;
            full.measure(&mut worst, release).await;
            full.fill().await;
        }
        worst.print("all released");
    }
    // A change in every run.
    let reload = |run: usize| Templates {
        globs_before: size.globs + run % 2,
        ..size.scarce()
    };
    let changed_kind = |run: usize| Templates {
        kind: ["PRIORITY_BANDS", "FAIR_SHARE"][run % 2],
        ..size.scarce()
    };
    let events: [(_, _, &dyn Fn(usize) -> Templates); 2] = [
        (Event::Reload, "reload", &reload),
        (Event::ChangedKind, "changed kind", &changed_kind),
    ];
    for (event, name, templates) in events {
        if size.has(event) {
            let mut worst = Worst::default();
            for run in 0..size.runs {
                let reload = async |subject: &mut Subject| {
                    templates(run).write(&subject.templates());
                    wait_for_log(subject, "new templates are in force");
                };
                full.measure(&mut worst, reload).await;
            }
            worst.print(name);
        }
    }
}

fn wait_for_log(subject: &mut Subject, message: &str) {
    block_in_place(|| subject.started().wait_for_log(message));
}

async fn expiry(place: &Place, size: &Size, event: Event) -> Worst {
    let mut worst = Worst::default();
    let templates = Templates {
        lease_length: size.short_lease,
        ..size.scarce()
    };
    for _ in 0..size.runs {
        let mut full = Full::start(place, size, templates, &[]).await;
        let first = Instant::now() + size.short_lease;
        full.fill().await;
        let last = Instant::now() + size.short_lease;
        let quiet = worst_while(&full.client, size.window, async {}).await;
        // A server takes off a little, because its clock may be wrong.
        let begins = first - size.short_lease / 20 - size.window / 4;
        assert!(
            Instant::now() < begins,
            "leases expire before all are there: give --short-lease"
        );
        let process = full.subject.started().process();
        let during = if event == Event::ExpiryAtOnce {
            freeze(process);
            sleep_until(last + Duration::from_secs(1)).await;
            worst_while(&full.client, size.window, async { thaw(process) }).await
        } else {
            sleep_until(begins).await;
            worst_while(&full.client, size.window, sleep_until(last)).await
        };
        worst.quiet.push(quiet);
        worst.during.push(during);
    }
    worst
}

/// Measures one candidate with its own path to etcd: while that is cut, there is no master.
async fn mastership(place: &Place, size: &Size) {
    let etcd = Etcd::start().await;
    let mut way = Proxy::to(etcd.address(0));
    let endpoint = way.address();
    let flags = ["--etcd-endpoints", &endpoint, "--election-ttl", "2s"];
    let mut full = Full::start(place, size, size.scarce(), &flags).await;
    let is_master = "this server is the master";
    wait_for_log(&mut full.subject, is_master);
    let (mut lost, mut gained) = (Worst::default(), Worst::default());
    let mut took = Vec::new();
    for _ in 0..size.runs {
        full.holders.forget();
        full.fill().await;
        let lose = async |subject: &mut Subject| {
            way.hold_all();
            wait_for_log(subject, "no master is known");
        };
        full.measure(&mut lost, lose).await;
        let gain = async |subject: &mut Subject| {
            way.pass();
            let begins = Instant::now();
            wait_for_log(subject, is_master);
            took.push(begins.elapsed());
        };
        full.measure(&mut gained, gain).await;
    }
    lost.print("mastership lost");
    gained.print("mastership gained");
    println!("the master again after {took:.2?}");
}
