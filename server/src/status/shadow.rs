//! Shadow templates: they divide the present demand beside the templates in force, for charts.
//!
//! A shadow grants nothing: it only reads the leases of the node, as [a plan](doorward_engine::plan) does. It divides
//! every five seconds, or less often if a division of all resources takes long.

use std::sync::Arc;
use std::time::Duration;

use doorward_documents::{Located, locate_bytes};
use doorward_door::tasks::joined;
use doorward_engine::plan::Terms;
use doorward_engine::templates::AlgorithmKind;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::time::{Instant, sleep};
use tracing::warn;

use crate::status::ServerState;
use crate::stored_place::StoredPlace;

const EVERY: Duration = Duration::from_secs(5);

/// Rest after a division, by the time that it took.
const REST: u32 = 9;

/// Shadow templates, and their place.
#[derive(Debug)]
pub struct Shadow {
    place: StoredPlace,
    read: Mutex<Read>,
}

/// Content of the place.
#[derive(Debug, Default)]
struct Read {
    /// The last valid ones.
    templates: Option<Arc<Located>>,
    /// Problem of the text, or of the place.
    problem: Option<String>,
}

/// The shadow templates, for charts.
#[derive(Clone, Debug, Serialize)]
pub struct ShadowNews {
    /// Their place.
    pub source: String,
    /// Why the newest text does not count.
    pub problem: Option<String>,
}

impl Shadow {
    /// Returns the shadow templates of a place, which has not been read.
    pub fn new(place: StoredPlace) -> Arc<Self> {
        Arc::new(Self {
            place,
            read: Mutex::default(),
        })
    }

    /// Returns the shadow templates, for charts.
    pub fn news(&self) -> ShadowNews {
        let read = self.read.lock();
        ShadowNews {
            source: self.place.to_string(),
            problem: read.problem.clone(),
        }
    }

    /// Returns their place.
    pub const fn place(&self) -> &StoredPlace {
        &self.place
    }

    /// Divides again and again. Runs until the server ends: spawn it.
    pub async fn run(self: Arc<Self>, state: Arc<ServerState>) {
        loop {
            self.read().await;
            let began = Instant::now();
            let shadow = Arc::clone(&self);
            state.look(move |state| shadow.divide(state)).await;
            sleep((began.elapsed() * REST).max(EVERY)).await;
        }
    }

    /// Reads the templates. An invalid text does not count, and the last valid one goes on.
    async fn read(&self) {
        let found = self.place.read(&Arc::default()).await;
        let found = found.map_err(|status| status.message().to_owned());
        let text = found.and_then(|text| text.ok_or_else(|| "there is none".to_owned()));
        let name = self.place.to_string();
        let parse = move || locate_bytes(&text?, &name).map_err(|error| error.to_string());
        let parsed = joined(tokio::task::spawn_blocking(parse)).await;
        let mut read = self.read.lock();
        let problem = match parsed {
            Ok(located) => {
                read.templates = Some(Arc::new(located));
                None
            }
            Err(problem) => Some(problem),
        };
        if let Some(problem) = &problem
            && read.problem.as_ref() != Some(problem)
        {
            warn!(
                place = %self.place,
                problem, "shadow templates do not count; the last valid ones go on"
            );
        }
        read.problem = problem;
    }

    fn divide(&self, state: &ServerState) {
        let located = self.read.lock().templates.clone();
        let Some(located) = located else {
            return;
        };
        let resources = state.history().resources().into_iter();
        let shadows = resources.filter_map(|id| {
            let template = located.templates.find(&id)?;
            if template.algorithm.kind == AlgorithmKind::Budget {
                return None;
            }
            let division = state.divided(&id, Terms::of_template(template));
            let leases = state.lease_looks(&id, Default::default(), "");
            let leases = leases.flat_map(|(leases, ..)| leases);
            let granted: f64 = leases.map(|it| division.share_of(&it.demand).get()).sum();
            // Charts need no more digits.
            Some((id, granted as f32))
        });
        state.history().set_shadows(shadows.collect());
    }
}
