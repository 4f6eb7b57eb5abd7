//! Answers to a fake client's requests.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::capacity::Capacity;
use crate::state::{Granted, LimitedBy, RefusalKind, Refused, Response, SPAN_MAX};

/// Refresh interval of every lease; no test waits for it.
const REFRESH_INTERVAL: Duration = Duration::from_secs(5);

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
    pub(crate) fn response(&self, wanted: &BTreeMap<String, f64>) -> Response {
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
        }
    }
}
