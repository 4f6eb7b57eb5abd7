//! How etcd is doing, as this server sees it, for everyone who looks.

use std::time::Duration;

use tokio::sync::watch;
use tracing::{info, warn};

use crate::clock;

/// How etcd is doing, as this server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// Since when, since the Unix epoch.
    pub since: Duration,
    /// Why it cannot be asked. None: it can.
    pub problem: Option<String>,
}

/// Tells how it is doing. The log is told once when it is away, and once when it is back.
#[derive(Debug)]
pub(super) struct Contacts {
    told: watch::Sender<Contact>,
    is_down_told: bool,
}

impl Contacts {
    pub(super) fn new() -> Self {
        Self {
            told: watch::Sender::new(Contact {
                since: clock::wall(),
                problem: Some("it was not asked yet".to_owned()),
            }),
            is_down_told: false,
        }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Contact> {
        self.told.subscribe()
    }

    /// It answered, or could not be asked and why.
    pub(super) fn note(&mut self, problem: Option<String>) {
        let is_down = problem.is_some();
        if let Some(problem) = &problem
            && !self.is_down_told
        {
            warn!(problem, "etcd cannot be asked; trying on");
        } else if !is_down && self.is_down_told {
            info!("etcd answers again");
        }
        self.is_down_told = is_down;
        self.told.send_if_modified(|contact| {
            let is_news = contact.problem != problem;
            if contact.problem.is_some() != is_down {
                contact.since = clock::wall();
            }
            contact.problem = problem;
            is_news
        });
    }
}
