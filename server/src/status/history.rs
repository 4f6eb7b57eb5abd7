//! Figures of the last ten minutes and of the last day, of the busiest resources, for charts; and the changes of that
//! time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::messages::ResourceSnapshot;
use doorward_engine::node::mastership::Mastership;
use doorward_session::time::millis;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};

use crate::clock;
use crate::status::ServerState;

/// Resources with a history: those that want most. Their figures take 48 MB at most.
const RESOURCES_MAX: usize = 2_000;

/// Seconds between two choices of those, if there are more.
const CHOSEN_EVERY: u32 = 10;

/// Resources that are read at a time.
const RESOURCES_PER_LOOK: usize = 50;

/// Seconds between two samples, of the last ten minutes and of the last day.
const EVERY_SECONDS: [u32; 2] = [1, 144];

const DAY: u32 = 86_400;

/// Samples of each.
const SAMPLES: usize = 600;

/// Largest number of changes.
const MARKS_MAX: usize = 200;

/// Capacity, wants, and what is granted and reserved.
type Figures = [f32; 4];

/// A sample, and its time in seconds since the server started.
type Sample = (u32, Figures);

/// Histories of resources, and changes of the server.
#[derive(Debug, Default)]
pub struct History {
    samples: Mutex<BTreeMap<ResourceId, [VecDeque<Sample>; 2]>>,
    marks: Mutex<VecDeque<Mark>>,
}

/// A change, for charts.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// Time since the Unix epoch, in milliseconds.
    at_ms: u64,
    text: String,
}

/// Samples of a resource.
#[derive(Debug, Serialize)]
pub struct Chart {
    now_ms: u64,
    series: Vec<Series>,
    marks: Vec<Mark>,
}

#[derive(Debug, Serialize)]
struct Series {
    every_ms: u64,
    /// Time since the Unix epoch in milliseconds, capacity, wants, granted, reserved.
    samples: Vec<(u64, f32, f32, f32, f32)>,
}

fn unix_ms() -> u64 {
    millis(clock::wall())
}

impl History {
    /// Notes a change.
    pub fn note(&self, text: String) {
        let mut marks = self.marks.lock();
        if marks.len() == MARKS_MAX {
            marks.pop_front();
        }
        let at_ms = unix_ms();
        marks.push_back(Mark { at_ms, text });
    }

    /// Returns the chart of a resource. `age`: time since the server started.
    pub fn chart(&self, resource: &ResourceId, age: Duration) -> Chart {
        let now_ms = unix_ms();
        let started_ms = now_ms.saturating_sub(millis(age));
        let samples = self.samples.lock();
        let rings = samples.get(resource).into_iter().flatten();
        let series = rings.zip(EVERY_SECONDS).map(|(ring, every)| Series {
            every_ms: 1_000 * u64::from(every),
            samples: ring
                .iter()
                .map(|(at, [capacity, wants, granted, reserved])| {
                    let at_ms = started_ms + 1_000 * u64::from(*at);
                    (at_ms, *capacity, *wants, *granted, *reserved)
                })
                .collect(),
        });
        Chart {
            now_ms,
            series: series.collect(),
            marks: self.marks.lock().iter().cloned().collect(),
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
        for (ring, every) in rings.iter_mut().zip(EVERY_SECONDS) {
            if ring.back().is_some_and(|(last, _)| at < last + every) {
                continue;
            }
            if ring.len() == SAMPLES {
                ring.pop_front();
            }
            if ring.capacity() < SAMPLES {
                ring.reserve_exact(SAMPLES);
            }
            ring.push_back((at, figures));
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "charts need no more digits"
)]
fn figures(resource: &ResourceSnapshot) -> Figures {
    let all = [
        resource.capacity,
        resource.wants,
        resource.granted,
        resource.reserved,
    ];
    all.map(|figure| figure as f32)
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

    /// Returns the time since the server started.
    pub fn age(&self) -> Duration {
        self.node().clock().now().since_origin()
    }

    fn sample(&self, chooses: bool) {
        let history = self.history();
        let at = u32::try_from(self.age().as_secs()).unwrap_or(u32::MAX);
        if chooses {
            let all = self.snapshots_after(None, usize::MAX);
            let all = all.map(|it| (figures(&it)[1], it.resource)).collect();
            history.choose(all, at);
        }
        let chosen: Vec<ResourceId> = history.samples.lock().keys().cloned().collect();
        for some in chosen.chunks(RESOURCES_PER_LOOK) {
            let seen = self.node().look(|node, now| {
                let seen = some.iter().filter_map(|id| node.resource_snapshot(id, now));
                seen.map(|it| (figures(&it), it.resource))
                    .collect::<Vec<_>>()
            });
            for (figures, resource) in seen {
                history.record(&resource, at, figures);
            }
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> ResourceId {
        ResourceId::new(&format!("r{number}")).unwrap()
    }

    #[test]
    fn a_chart_has_ten_minutes_by_the_second_and_a_day_by_the_144_seconds() {
        let history = History::default();
        history.choose(vec![(1.0, id(0))], 0);
        for at in 0..100_000 {
            history.record(&id(0), at, [1.0, 2.0, 3.0, at as f32]);
        }
        let chart = history.chart(&id(0), Duration::from_secs(99_999));
        let [minutes, day] = &chart.series[..] else {
            panic!("{chart:?}");
        };
        assert_eq!((minutes.samples.len(), day.samples.len()), (600, 600));
        assert_eq!(minutes.samples[599].4, 99_999.0);
        assert_eq!(minutes.samples[0].0, chart.now_ms - 599_000);
        let lasts = day.samples[599].0 - day.samples[0].0;
        assert_eq!(lasts, 599 * 144_000, "a day");
    }

    #[test]
    fn the_busiest_resources_have_a_history_and_keep_it() {
        let history = History::default();
        let all = |busiest: usize| {
            let wants = |number| if number == busiest { 9.0 } else { 1.0 };
            (0..RESOURCES_MAX + 1)
                .map(|number| (wants(number), id(number)))
                .collect()
        };
        history.choose(all(RESOURCES_MAX), 0);
        history.record(&id(RESOURCES_MAX), 1, [1.0; 4]);
        history.choose(all(RESOURCES_MAX), 2);
        assert_eq!(history.samples.lock().len(), RESOURCES_MAX);
        assert_eq!(
            history.chart(&id(RESOURCES_MAX), Duration::ZERO).series[0]
                .samples
                .len(),
            1
        );
    }

    #[test]
    fn a_resource_that_is_gone_keeps_its_history_for_a_day() {
        let history = History::default();
        history.choose(vec![(1.0, id(0))], 0);
        history.record(&id(0), 1, [1.0; 4]);
        for (at, left) in [(2, 1), (86_400, 1), (86_401, 0)] {
            history.choose(Vec::new(), at);
            assert_eq!(history.samples.lock().len(), left, "at {at}");
        }
    }

    #[test]
    fn old_changes_make_room() {
        let history = History::default();
        for number in 0..=MARKS_MAX {
            history.note(number.to_string());
        }
        let marks = history.chart(&id(0), Duration::ZERO).marks;
        assert_eq!((marks.len(), &*marks[0].text), (MARKS_MAX, "1"));
    }
}
