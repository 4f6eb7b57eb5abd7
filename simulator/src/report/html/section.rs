//! The part of a page that is about one resource.

use crate::recording::{CLIENT_FIGURES_MAX, Figures, Recording, ResourceRecording};
use crate::report::chart::{Chart, keys_in_page};
use crate::report::charts::{NODES_MAX, Section};
use crate::report::figures::FIGURES;
use crate::report::html::BANDS;
use crate::report::shortage_rows::{ShortageRow, rows};
use crate::report::wait_rows::shown_waits;
use doorward_pages::numbers::{count, measured, seconds, several};

/// Charts of clients that are shown at once; the others are unfolded.
const CLIENTS_OPEN: usize = 9;
/// Clients that go short, shown at once and unfolded.
const SHORTAGES_OPEN: usize = 10;
const SHORTAGES_MAX: usize = 100;

/// A resource.
pub(super) struct SectionView<'a> {
    pub(super) anchor: String,
    pub(super) resource: &'a str,
    pub(super) algorithm: &'a str,
    /// The capacity at the start, and whether it changed.
    pub(super) capacity: String,
    /// How long leases last; empty if that is not known.
    pub(super) leases: String,
    pub(super) whole: String,
    pub(super) short: Option<String>,
    /// Who goes short: those to whom most is missing, and others that are unfolded.
    pub(super) shortages: Vec<ShortageRow<'a>>,
    pub(super) shortages_folded: Vec<ShortageRow<'a>>,
    /// Of how many clients.
    pub(super) clients_short: String,
    /// What utilisation misses, by what clients waited for. Empty: nothing.
    pub(super) waits: Vec<WaitView>,
    pub(super) overshoot: String,
    pub(super) fairness: String,
    pub(super) serving: Option<String>,
    /// Title and drawing.
    pub(super) levels: Vec<(String, String)>,
    pub(super) nodes: Small,
    /// How many nodes have no chart; empty: all have one.
    pub(super) nodes_left_out: String,
    pub(super) clients: Small,
    /// Clients that are shown, of how many.
    pub(super) clients_shown: String,
    pub(super) clients_share_scale: bool,
}

/// A wait, and what it cost.
pub(super) struct WaitView {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) points: String,
    /// Of all that is missing, in percent.
    pub(super) width: String,
}

/// Small charts, and the legend they share.
pub(super) struct Small {
    pub(super) keys: String,
    /// Title and drawing.
    pub(super) open: Vec<(String, String)>,
    pub(super) folded: Vec<(String, String)>,
}

impl<'a> SectionView<'a> {
    pub(super) fn new(recording: &Recording, resource: &'a ResourceRecording, slug: &str) -> Self {
        let section = Section::new(recording, resource, slug, BANDS);
        let drawn = Chart::in_page;
        let mut shortages = rows(resource);
        let clients_short = match shortages.len() {
            CLIENT_FIGURES_MAX => format!("more than {}", count(CLIENT_FIGURES_MAX)),
            short => several(short, "client", "clients"),
        };
        shortages.truncate(SHORTAGES_MAX);
        let folded = shortages.split_off(SHORTAGES_OPEN.min(shortages.len()));
        Self {
            anchor: format!("resource-{slug}"),
            resource: &resource.resource,
            algorithm: &resource.algorithm,
            capacity: capacity(resource),
            leases: resource.lease_length_s.map(seconds).unwrap_or_default(),
            whole: drawn(&section.whole),
            short: section.short.as_ref().map(drawn),
            shortages,
            shortages_folded: folded,
            clients_short,
            waits: waits(resource),
            overshoot: drawn(&section.overshoot),
            fairness: drawn(&section.fairness),
            serving: section.serving.as_ref().map(drawn),
            levels: titled(&section.levels),
            nodes: Small::new(&section.nodes, NODES_MAX),
            nodes_left_out: match recording.nodes.len().saturating_sub(NODES_MAX) {
                0 => String::new(),
                more => count(more),
            },
            clients: Small::new(&section.clients, CLIENTS_OPEN),
            clients_shown: match resource.clients.len() {
                shown if shown < recording.clients => {
                    let all = several(recording.clients, "client", "clients");
                    format!("{} of {all}", count(shown))
                }
                shown => several(shown, "client", "clients"),
            },
            clients_share_scale: section.clients_share_scale,
        }
    }
}

impl Small {
    fn new(charts: &[Chart], open_max: usize) -> Self {
        let mut open = titled(charts);
        let folded = open.split_off(open_max.min(open.len()));
        Self {
            keys: keys_in_page(charts),
            open,
            folded,
        }
    }
}

fn waits(resource: &ResourceRecording) -> Vec<WaitView> {
    let all: f64 = shown_waits(resource).map(|(_, lost)| lost).sum();
    let view = |(wait, lost): (&'static crate::report::figures::Figure, f64)| WaitView {
        name: wait.name,
        about: wait.about,
        points: wait.unit.show(lost),
        width: format!("{:.1}", 100.0 * lost / all),
    };
    shown_waits(resource).map(view).collect()
}

fn titled(charts: &[Chart]) -> Vec<(String, String)> {
    let charts = charts.iter();
    charts
        .map(|chart| (chart.title.clone(), chart.in_page()))
        .collect()
}

fn capacity(resource: &ResourceRecording) -> String {
    let capacities = || resource.samples.iter().map(|sample| sample.capacity);
    let least = capacities().fold(f64::INFINITY, f64::min);
    let most = capacities().fold(0.0, f64::max);
    match () {
        () if resource.samples.is_empty() => "unknown".to_owned(),
        () if most > least => format!("{} to {}", measured(least), measured(most)),
        () => measured(most),
    }
}

/// Each figure, and whether it should be looked at.
pub(super) fn values(figures: &Figures) -> Vec<(String, bool)> {
    let all = FIGURES.iter();
    all.map(|figure| {
        let alarming = figure.is_alarming((figure.get)(figures));
        (figure.show(figures), alarming)
    })
    .collect()
}
