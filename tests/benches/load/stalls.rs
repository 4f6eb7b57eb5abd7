//! Waits of clients because of operators, scrapes and accidents. A client asks a full server all the time. Its worst
//! wait during an event is compared with the worst of as long a time just before.

use std::sync::Arc;
use std::time::Duration;

use doorward_proto::admin::v1::{GetStatusRequest, GetStatusResponse};
use doorward_tests::etcd::Etcd;
use doorward_tests::processes::{freeze, thaw};
use doorward_tests::proxy::Proxy;
use tokio::time::{Instant, sleep, sleep_until};

use crate::fill::{empty, fill, holders};
use crate::holds::Holds;
use crate::population::Population;
use crate::probe::Probe;
use crate::stall::Stall;
use crate::stalled::{Stalled, Window};
use crate::subject::{Place, Subject, Templates};
use crate::wire::{GET_STATUS, Wire};

/// Time between two calls of the client.
pub(crate) const PACE: Duration = Duration::from_millis(2);

/// Time after which an answer counts as missing.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sizes of the measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) resources: usize,
    pub(crate) leases: usize,
    /// Number of globs before the one that matches.
    pub(crate) globs: usize,
    pub(crate) runs: usize,
    /// Shortest time of a window.
    pub(crate) window: Duration,
    /// Length of leases that must expire. Every client has one by then.
    pub(crate) short_lease: Duration,
}

/// A full server, and the client that asks it all the time.
struct Full {
    subject: Subject,
    holders: Arc<Population>,
    probe: Arc<Probe>,
    size: Size,
    /// Templates in force.
    templates: Templates,
}

impl Full {
    async fn start(place: &Place, size: Size, templates: Templates, flags: &[&str]) -> Self {
        let subject = Subject::server(place, templates, flags);
        let holders = holders(size.leases, size.resources);
        let probe = Arc::new(Probe::start(subject.address, PACE));
        Self {
            subject,
            holders,
            probe,
            size,
            templates,
        }
    }

    async fn fill(&self) -> crate::fill::Filled {
        fill(self.subject.address, &self.holders).await.unwrap()
    }

    /// Measures a window without an event.
    async fn baseline(&mut self) -> Window {
        // The effects of earlier events are over.
        sleep(self.size.window / 4).await;
        self.meanwhile(async |_: &mut Subject| {}).await
    }

    /// Measures a window with an event, which begins soon.
    async fn meanwhile(&mut self, happens: impl AsyncFnOnce(&mut Subject)) -> Window {
        let before = Holds::of(&self.subject.metrics());
        // The effects of the reading are over.
        sleep(self.size.window / 8).await;
        let from = Instant::now();
        happens(&mut self.subject).await;
        // The work that it leaves is done soon after.
        let settled = Instant::now() + self.size.window / 2;
        sleep_until(settled.max(from + self.size.window)).await;
        let worst = tokio::task::block_in_place(|| self.probe.worst_since(from));
        let after = Holds::of(&self.subject.metrics());
        Window {
            worst,
            holds: after.since(&before),
        }
    }

    /// Changes the templates without a measurement, if they are others.
    async fn change_quietly(&mut self, templates: Templates) {
        if self.templates != templates {
            reload(&mut self.subject, templates);
            self.templates = templates;
            sleep(self.size.window / 2).await;
        }
    }

    async fn measure(&mut self, stalled: &mut Stalled, happens: impl AsyncFnOnce(&mut Subject)) {
        let baseline = self.baseline().await;
        let meanwhile = self.meanwhile(happens).await;
        stalled.note(baseline, meanwhile);
    }
}

/// Returns templates whose capacity is half of the wants.
fn scarce(size: Size) -> Templates {
    let wanted = 10 * (size.leases / size.resources) as u64;
    Templates {
        capacity: (wanted / 2).max(1),
        ..Templates::FAIR
    }
}

/// Measures all events.
pub(crate) async fn measure(
    place: &Place,
    size: Size,
    stalls: &[Stall],
    mut tell: impl FnMut(Stalled),
) {
    let of_full: Vec<Stall> = stalls
        .iter()
        .copied()
        .filter(|stall| stall.is_of_full_server())
        .collect();
    if !of_full.is_empty() {
        let mut full = Full::start(place, size, scarce(size), &[]).await;
        full.fill().await;
        for stall in of_full {
            tell(look_or_change(&mut full, stall).await);
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
    let mut stalled = Stalled::new(stall.name());
    // As after a run, so that each of them finds the same state.
    full.change_quietly(templates_of(stall, full.size, 1)).await;
    for run in 0..full.size.runs {
        match stall {
            Stall::Metrics => get(full, &mut stalled, "/metrics").await,
            Stall::Status => get(full, &mut stalled, "/status").await,
            Stall::Page => get(full, &mut stalled, "/").await,
            Stall::ResourcePage => get(full, &mut stalled, "/resource?id=load/r-0000000").await,
            Stall::LimitsPage => get(full, &mut stalled, "/limits").await,
            Stall::GetStatus => {
                full.measure(&mut stalled, async |subject| get_status(subject).await)
                    .await;
            }
            Stall::Released => {
                let holders = Arc::clone(&full.holders);
                full.measure(&mut stalled, async |subject| {
                    empty(subject.address, &holders).await.unwrap();
                })
                .await;
                full.fill().await;
            }
            _ => {
                full.templates = templates_of(stall, full.size, run);
                let templates = full.templates;
                full.measure(&mut stalled, async |subject| reload(subject, templates))
                    .await;
            }
        }
    }
    stalled
}

/// Returns the templates in force after a run: they alternate between runs.
fn templates_of(stall: Stall, size: Size, run: usize) -> Templates {
    let is_other = run.is_multiple_of(2);
    match stall {
        Stall::Reload => Templates {
            globs_before: size.globs,
            globs_named: if is_other { "b" } else { "a" },
            ..scarce(size)
        },
        Stall::ChangedKind if is_other => Templates {
            kind: "PROPORTIONAL_SHARE",
            ..scarce(size)
        },
        Stall::ChangedBands if is_other => Templates {
            kind: "PRIORITY_BANDS",
            ..scarce(size)
        },
        _ => scarce(size),
    }
}

/// Writes new templates, and waits until they are in force.
fn reload(subject: &mut Subject, templates: Templates) {
    templates.write(&subject.templates());
    // The server notices that its file is another one.
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
        Stall::ExpiryAtOnce.name()
    } else {
        Stall::Expiry.name()
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
        // A server takes off a little, because its clock may be wrong.
        sleep_until(first - size.short_lease / 20 - size.window / 4).await;
        let probe = Arc::clone(&full.probe);
        let meanwhile = full.meanwhile(async |subject| {
            if at_once {
                probe.pause();
                let process = subject.started().process();
                freeze(process);
                sleep_until(last + Duration::from_secs(1)).await;
                thaw(process);
                probe.go_on();
                // And as long again, after everything is done.
                sleep(size.window / 2).await;
            } else {
                sleep_until(last).await;
            }
        });
        stalled.note(baseline, meanwhile.await);
    }
    stalled
}

/// Measures one candidate with its own path to etcd: while that is cut, there is no master.
async fn mastership(place: &Place, size: Size) -> [Stalled; 2] {
    let etcd = Etcd::start().await;
    let mut way = Proxy::to(etcd.address(0));
    let endpoint = way.address();
    let flags = ["--etcd-endpoints", &endpoint, "--election-ttl", "2s"];
    let mut full = Full::start(place, size, scarce(size), &flags).await;
    let is_master = "this server is the master";
    full.subject.started().wait_for_log(is_master);
    let mut lost = Stalled::new(Stall::Mastership.name());
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
