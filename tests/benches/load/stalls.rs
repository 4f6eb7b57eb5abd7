//! How long clients wait because of what operators, scrapes and accidents do: a full server, a client that asks all
//! the time, and the worst that it sees while something happens, beside the worst of as long a time just before.

use std::sync::Arc;
use std::time::Duration;

use doorward_proto::admin::v1::{GetStatusRequest, GetStatusResponse};
use doorward_tests::etcd::Etcd;
use doorward_tests::processes::{freeze, thaw};
use doorward_tests::proxy::Proxy;
use tokio::time::{Instant, sleep, sleep_until};

use crate::fill::{fill, holders};
use crate::population::Population;
use crate::probe::Probe;
use crate::stalled::Stalled;
use crate::subject::{Place, Subject, Templates};
use crate::wire::{GET_STATUS, Wire};

/// How often the client asks.
pub(crate) const PACE: Duration = Duration::from_millis(2);

/// An answer that takes longer will not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// How large everything is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) resources: usize,
    pub(crate) leases: usize,
    /// Globs before the one that matches.
    pub(crate) globs: usize,
    pub(crate) runs: usize,
    /// How long is looked at least.
    pub(crate) window: Duration,
    /// How long leases last that are to expire. Everybody has one by then.
    pub(crate) short_lease: Duration,
}

/// What may make clients wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Stall {
    /// Templates are read again: many globs before the one that matches.
    Reload,
    /// All resources are divided by another algorithm.
    ChangedKind,
    /// GET /metrics.
    Metrics,
    /// GET /status.
    Status,
    /// GET /.
    Page,
    /// `GetStatus`.
    GetStatus,
    /// All leases end, as soon one after the other as they were granted.
    Expiry,
    /// All leases end at once: the server did nothing for a while.
    ExpiryAtOnce,
    /// The server loses its mastership, and all leases with it; then it is the master again.
    Mastership,
}

impl Stall {
    /// All of them.
    pub(crate) const ALL: [Self; 9] = [
        Self::Reload,
        Self::ChangedKind,
        Self::Metrics,
        Self::Status,
        Self::Page,
        Self::GetStatus,
        Self::Expiry,
        Self::ExpiryAtOnce,
        Self::Mastership,
    ];
}

/// A full server, and who asks it all the time.
struct Full {
    subject: Subject,
    holders: Arc<Population>,
    probe: Probe,
    size: Size,
}

impl Full {
    async fn start(place: &Place, size: Size, templates: Templates, flags: &[&str]) -> Self {
        let subject = Subject::server(place, templates, flags);
        let holders = holders(size.leases, size.resources);
        let probe = Probe::start(subject.address, PACE);
        Self {
            subject,
            holders,
            probe,
            size,
        }
    }

    async fn fill(&self) -> crate::fill::Filled {
        fill(self.subject.address, &self.holders).await.unwrap()
    }

    /// The worst of a window in which nothing happens.
    async fn baseline(&self) -> Duration {
        // What was before is over.
        sleep(self.size.window / 4).await;
        let from = Instant::now();
        sleep(self.size.window).await;
        self.worst_since(from)
    }

    /// The worst of a window in which something happens, which begins now.
    async fn meanwhile(&mut self, happens: impl AsyncFnOnce(&mut Subject)) -> Duration {
        let from = Instant::now();
        happens(&mut self.subject).await;
        // What it leaves to be done is done soon after.
        let settled = Instant::now() + self.size.window / 2;
        sleep_until(settled.max(from + self.size.window)).await;
        self.worst_since(from)
    }

    fn worst_since(&self, from: Instant) -> Duration {
        tokio::task::block_in_place(|| self.probe.worst_since(from))
    }

    async fn measure(&mut self, stalled: &mut Stalled, happens: impl AsyncFnOnce(&mut Subject)) {
        let baseline = self.baseline().await;
        let worst = self.meanwhile(happens).await;
        stalled.note(baseline, worst);
    }
}

/// Templates of which there is half as much as everybody wants.
fn scarce(size: Size) -> Templates {
    let wanted = 10 * (size.leases / size.resources) as u64;
    Templates {
        capacity: (wanted / 2).max(1),
        ..Templates::FAIR
    }
}

/// Measures them.
pub(crate) async fn measure(
    place: &Place,
    size: Size,
    stalls: &[Stall],
    mut tell: impl FnMut(Stalled),
) {
    let of_full = |stall: &Stall| {
        !matches!(
            stall,
            Stall::Expiry | Stall::ExpiryAtOnce | Stall::Mastership
        )
    };
    if stalls.iter().any(of_full) {
        let mut full = Full::start(place, size, scarce(size), &[]).await;
        full.fill().await;
        for stall in stalls.iter().filter(|stall| of_full(stall)) {
            tell(look_or_change(&mut full, *stall).await);
        }
    }
    for stall in stalls {
        match stall {
            Stall::Expiry => tell(expiry(place, size, false).await),
            Stall::ExpiryAtOnce => tell(expiry(place, size, true).await),
            Stall::Mastership => mastership(place, size)
                .await
                .into_iter()
                .for_each(&mut tell),
            _ => {}
        }
    }
}

async fn look_or_change(full: &mut Full, stall: Stall) -> Stalled {
    let size = full.size;
    let mut stalled = Stalled::new(match stall {
        Stall::Reload => "reload",
        Stall::ChangedKind => "changed kind",
        Stall::Metrics => "GET /metrics",
        Stall::Status => "GET /status",
        Stall::Page => "GET /",
        _ => "GetStatus",
    });
    for run in 0..size.runs {
        match stall {
            Stall::Reload | Stall::ChangedKind => {
                let is_other = run % 2 == 0;
                let before = if is_other { size.globs } else { size.globs / 2 };
                let templates = match stall {
                    Stall::Reload => Templates {
                        globs_before: before,
                        ..scarce(size)
                    },
                    _ if is_other => Templates {
                        kind: "PROPORTIONAL_SHARE",
                        ..scarce(size)
                    },
                    _ => scarce(size),
                };
                full.measure(&mut stalled, async |subject| reload(subject, templates))
                    .await;
            }
            Stall::Metrics => get(full, &mut stalled, "/metrics").await,
            Stall::Status => get(full, &mut stalled, "/status").await,
            Stall::Page => get(full, &mut stalled, "/").await,
            _ => {
                full.measure(&mut stalled, async |subject| get_status(subject).await)
                    .await;
            }
        }
    }
    stalled
}

/// New templates, and waits until they are in force.
fn reload(subject: &mut Subject, templates: Templates) {
    templates.write(&subject.templates());
    // The server sees that its file is another one.
    let server = subject.started();
    let in_force = || server.wait_for_log("new templates are in force");
    tokio::task::block_in_place(in_force);
}

async fn get(full: &mut Full, stalled: &mut Stalled, path: &str) {
    full.measure(stalled, async |subject| {
        let server = subject.started();
        let answer = tokio::task::block_in_place(|| server.get(path));
        assert!(answer.starts_with("HTTP/1.0 200"), "{path}: {answer:.200}");
    })
    .await;
}

async fn get_status(subject: &mut Subject) {
    let wire = Wire::open(subject.address, None).await.unwrap();
    let request = GetStatusRequest::default();
    let answer = wire.call_within::<GetStatusResponse>(PATIENCE, GET_STATUS, &request);
    assert!(!answer.await.unwrap().resources.is_empty());
}

async fn expiry(place: &Place, size: Size, at_once: bool) -> Stalled {
    let mut stalled = Stalled::new(if at_once {
        "all expire at once"
    } else {
        "all expire"
    });
    let templates = Templates {
        lease_length: size.short_lease,
        ..scarce(size)
    };
    for _ in 0..size.runs {
        let mut full = Full::start(place, size, templates, &[]).await;
        let filled = full.fill().await;
        let (first, last) = (
            filled.began + size.short_lease,
            filled.ended + size.short_lease,
        );
        assert!(
            Instant::now() + size.window < first,
            "leases expire before all are there: give --short-lease"
        );
        let baseline = full.baseline().await;
        // A server takes off a little, since its clock may be wrong.
        sleep_until(first - size.short_lease / 20).await;
        if at_once {
            full.probe.pause();
            let process = full.subject.started().process();
            freeze(process);
            sleep_until(last + Duration::from_secs(1)).await;
            thaw(process);
            full.probe.go_on();
        }
        let worst = full.meanwhile(async |_: &mut Subject| {
            sleep_until(last).await;
        });
        stalled.note(baseline, worst.await);
    }
    stalled
}

/// One candidate, with a way of its own to etcd: while that is cut, nobody is the master.
async fn mastership(place: &Place, size: Size) -> [Stalled; 2] {
    let etcd = Etcd::start().await;
    let mut way = Proxy::to(etcd.address(0));
    let endpoint = way.address();
    let flags = ["--etcd-endpoints", &endpoint, "--election-ttl", "2s"];
    let mut full = Full::start(place, size, scarce(size), &flags).await;
    let is_master = "this server is the master";
    full.subject.started().wait_for_log(is_master);
    let mut lost = Stalled::new("mastership lost");
    let mut gained = Stalled::new("mastership gained");
    for _ in 0..size.runs {
        for client in 0..full.holders.clients() {
            full.holders.forget(client);
        }
        full.fill().await;
        full.measure(&mut lost, async |subject| {
            way.hold_all();
            let server = subject.started();
            tokio::task::block_in_place(|| server.wait_for_log("no master is known"));
        })
        .await;
        full.measure(&mut gained, async |subject| {
            way.pass();
            let server = subject.started();
            tokio::task::block_in_place(|| server.wait_for_log(is_master));
        })
        .await;
    }
    [lost, gained]
}
