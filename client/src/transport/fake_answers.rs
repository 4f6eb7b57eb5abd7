//! Answers to a fake client's requests.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::capacity::Capacity;
use crate::state::{AMOUNT_MAX, Granted, LimitedBy, RefusalKind, Refused, Response, SPAN_MAX};
use doorward_session::time::budget::{BudgetState, Window};

/// Refresh interval of every lease; no test waits for it.
const REFRESH_INTERVAL: Duration = Duration::from_secs(5);

/// State of every budget: its window does not end.
const LIFETIME: BudgetState = BudgetState {
    granter_book: 1,
    window: Window::LIFETIME,
    ends_in: None,
    total: 0,
    known_taken: 0,
    soft: false,
};

/// Answers to a fake client's requests.
#[derive(Default)]
pub(crate) struct FakeAnswers {
    pub(crate) is_down: bool,
    pub(crate) resources: BTreeMap<String, Setting>,
}

/// Settings of one resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setting {
    /// Capacity; None: no limit.
    pub(crate) capacity: Option<f64>,
    pub(crate) safe_capacity: Option<f64>,
    /// Refusal: no lease, whatever the capacity.
    pub(crate) refusal: Option<(RefusalKind, String)>,
}

impl FakeAnswers {
    pub(crate) fn response(
        &self,
        wanted: &BTreeMap<String, f64>,
        is_budget: impl Fn(&str) -> bool,
    ) -> Response {
        let mut response = Response::default();
        for (resource, wants) in wanted {
            let setting = self.resources.get(resource).cloned().unwrap_or_default();
            match setting.refusal {
                Some((kind, message)) => response.refused.push(Refused {
                    resource: resource.clone(),
                    kind,
                    message,
                    retry_in: None,
                }),
                None if is_budget(resource) => response.granted.push(Granted {
                    budget: Some(LIFETIME),
                    ..setting.lease(resource, AMOUNT_MAX)
                }),
                None => response.granted.push(setting.lease(resource, *wants)),
            }
        }
        response
    }
}

impl Setting {
    fn lease(&self, resource: &str, wants: f64) -> Granted {
        let capacity = self.capacity.unwrap_or(wants);
        let is_enough = capacity >= wants;
        Granted {
            resource: resource.to_owned(),
            capacity: if is_enough { wants } else { capacity },
            expires_in: SPAN_MAX,
            refresh_in: REFRESH_INTERVAL,
            safe_capacity: self.safe_capacity.map(Capacity::Limited),
            granted_by: None,
            limited_by: Some(if is_enough {
                LimitedBy::Wants
            } else {
                LimitedBy::Share
            }),
            learning_for: None,
            decided: Some(true),
            sequence: None,
            budget: None,
        }
    }
}
