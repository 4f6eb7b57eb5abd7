//! Figures of the last ten minutes and of the last day, of the busiest resources, for charts; and the changes of that
//! time. A server with a state directory keeps them over a restart.

mod kept;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::messages::ResourceSnapshot;
use doorward_engine::node::mastership::Mastership;
use doorward_session::time::millis;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::clock;
use crate::status::ServerState;
use crate::status::shadow::ShadowNews;

/// Resources with a history: those that want most. Their figures take 48 MB at most.
const RESOURCES_MAX: usize = 2_000;

/// Seconds between two choices of those, if there are more.
const CHOSEN_EVERY: u32 = 10;

/// Resources that are read at a time.
const RESOURCES_PER_LOOK: usize = 50;

/// Seconds between two samples, and number of samples: of the last ten minutes, and of the last day.
const SERIES: [(u32, usize); 2] = [(1, 600), (216, 400)];

const DAY: u32 = 86_400;

/// Time between two writes to the state directory.
const KEPT_EVERY: Duration = Duration::from_secs(216);

/// Largest number of changes.
const MARKS_MAX: usize = 200;

/// Capacity, wants, what is granted and reserved, and what the shadow templates would grant (not a number: nothing).
type Figures = [f32; FIGURES];

const FIGURES: usize = 5;

/// A sample, and its time in seconds since the Unix epoch.
type Sample = (u32, Figures);

type Rings = [VecDeque<Sample>; 2];

/// Histories of resources, and changes of the server.
#[derive(Debug, Default)]
pub struct History {
    samples: Mutex<BTreeMap<ResourceId, Rings>>,
    /// Amounts that the shadow templates would grant now.
    shadows: Mutex<BTreeMap<ResourceId, f32>>,
    marks: Mutex<VecDeque<Mark>>,
    /// File in the state directory, if there is one.
    file: OnceLock<PathBuf>,
}

/// A change, for charts.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub struct Mark {
    /// Time since the Unix epoch, in milliseconds.
    #[prost(uint64, tag = "1")]
    at_ms: u64,
    #[prost(string, tag = "2")]
    text: String,
}

/// Samples of a resource.
#[derive(Debug, Serialize)]
pub struct Chart {
    now_ms: u64,
    series: Vec<Series>,
    marks: Vec<Mark>,
    /// Shadow templates, if there are any.
    pub(crate) shadow: Option<ShadowNews>,
}

#[derive(Debug, Serialize)]
struct Series {
    every_ms: u64,
    /// Time since the Unix epoch in milliseconds, capacity, wants, granted, reserved, and granted by the shadow
    /// templates, or null.
    samples: Vec<(u64, f32, f32, f32, f32, f32)>,
}

fn unix_ms() -> u64 {
    millis(clock::wall())
}

impl History {
    /// Notes a change.
    pub fn note(&self, text: String) {
        let mut marks = self.marks.lock();
        while marks.len() >= MARKS_MAX {
            marks.pop_front();
        }
        let at_ms = unix_ms();
        marks.push_back(Mark { at_ms, text });
    }

    /// Returns the resources that have a history.
    pub fn resources(&self) -> Vec<ResourceId> {
        self.samples.lock().keys().cloned().collect()
    }

    /// Notes what the shadow templates would grant of each resource.
    pub fn set_shadows(&self, shadows: BTreeMap<ResourceId, f32>) {
        *self.shadows.lock() = shadows;
    }

    /// Returns the chart of a resource.
    pub fn chart(&self, resource: &ResourceId) -> Chart {
        let now_ms = unix_ms();
        let samples = self.samples.lock();
        let rings = samples.get(resource).into_iter().flatten();
        let series = rings.zip(SERIES).map(|(ring, (every, _))| Series {
            every_ms: 1_000 * u64::from(every),
            samples: ring
                .iter()
                .map(|(at, [capacity, wants, granted, reserved, shadow])| {
                    let at_ms = 1_000 * u64::from(*at);
                    (at_ms, *capacity, *wants, *granted, *reserved, *shadow)
                })
                .collect(),
        });
        Chart {
            now_ms,
            series: series.collect(),
            marks: self.marks.lock().iter().cloned().collect(),
            shadow: None,
        }
    }

    /// Gives the resources that want most a history. A resource that is gone keeps its history for a
    /// day, while there is room.
    fn choose(&self, mut all: Vec<(f32, ResourceId)>, at: u32) {
        all.sort_by(|one, other| other.0.total_cmp(&one.0));
        all.truncate(RESOURCES_MAX);
        let mut samples = self.samples.lock();
        let mut former = std::mem::take(&mut *samples);
        let chosen = all.into_iter().map(|(_, id)| {
            let known = former.remove(&id);
            (id, known.unwrap_or_default())
        });
        samples.extend(chosen);
        let room = RESOURCES_MAX.saturating_sub(samples.len());
        former.retain(|_, [_, day]| day.back().is_some_and(|(last, _)| last + DAY > at));
        samples.extend(former.into_iter().take(room));
    }

    fn record(&self, resource: &ResourceId, at: u32, figures: Figures) {
        let mut samples = self.samples.lock();
        let Some(rings) = samples.get_mut(resource) else {
            return;
        };
        for (ring, (every, samples_max)) in rings.iter_mut().zip(SERIES) {
            // The clock was set back.
            while ring.back().is_some_and(|(last, _)| *last > at) {
                ring.pop_back();
            }
            if ring.back().is_some_and(|(last, _)| at < last + every) {
                continue;
            }
            if ring.len() == samples_max {
                ring.pop_front();
            }
            ring.reserve_exact(samples_max - ring.len());
            ring.push_back((at, figures));
        }
    }
}

/// Returns the figures of a resource, with fewer digits: charts need no more.
fn figures(resource: &ResourceSnapshot, shadow: Option<f32>) -> Figures {
    [
        resource.capacity as f32,
        resource.wants as f32,
        resource.granted as f32,
        resource.reserved as f32,
        shadow.unwrap_or(f32::NAN),
    ]
}

impl ServerState {
    /// Records histories. Runs for ever: spawn it.
    pub async fn record(self: Arc<Self>) {
        let mut seconds = interval(Duration::from_secs(1));
        seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut masterships = self.node().masterships();
        for number in 0_u32.. {
            seconds.tick().await;
            if masterships.has_changed().unwrap_or(false) {
                let (_, mastership) = masterships.borrow_and_update().clone();
                self.history().note(match mastership {
                    Mastership::Master { .. } => "this server became the master".to_owned(),
                    Mastership::Elsewhere { master_address, .. } => {
                        format!("{master_address} is the master")
                    }
                    Mastership::Unknown => "no master is known".to_owned(),
                });
            }
            let has_room = self.history().samples.lock().len() < RESOURCES_MAX;
            let chooses = has_room || number.is_multiple_of(CHOSEN_EVERY);
            self.look(move |state| state.sample(chooses)).await;
        }
    }

    /// Keeps histories in the state directory. Runs for ever: spawn it.
    pub async fn keep_histories(self: Arc<Self>) {
        loop {
            sleep(KEPT_EVERY).await;
            self.look(|state| state.history().keep()).await;
        }
    }

    fn sample(&self, chooses: bool) {
        let history = self.history();
        let at = u32::try_from(clock::wall().as_secs()).unwrap_or(u32::MAX);
        if chooses {
            let all = self.snapshots_after(None, usize::MAX);
            let all = all.map(|it| (figures(&it, None)[1], it.resource)).collect();
            history.choose(all, at);
        }
        for some in history.resources().chunks(RESOURCES_PER_LOOK) {
            let seen = self.node().look(|node, now| {
                let seen = some.iter().filter_map(|id| node.resource_snapshot(id, now));
                seen.collect::<Vec<_>>()
            });
            for it in seen {
                let shadow = history.shadows.lock().get(&it.resource).copied();
                history.record(&it.resource, at, figures(&it, shadow));
            }
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests;
