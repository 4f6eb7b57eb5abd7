//! Refusals as statuses of gRPC, and back.

use http::HeaderMap;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::Refusal;
use crate::layer::clock;
use crate::layer::limits::{Inner, JITTER_MAX};
use crate::layer::refusal::without_lease;
use crate::rules::{Advice, Decision};

impl Inner {
    /// Returns the status of a refused call of gRPC, with RetryInfo, QuotaFailure and the headers.
    pub(crate) fn refuse_grpc(&self, decision: &Decision) -> Status {
        let refusal = decision.grpc(clock::part_of(JITTER_MAX));
        let code = refusal
            .as_ref()
            .map_or(Code::ResourceExhausted, |it| Code::from(it.code));
        let message = decision.why.to_string();
        if decision.advice == Advice::Drop {
            return Status::new(code, message);
        }
        let mut details = ErrorDetails::new();
        if let Some(refusal) = refusal {
            let delay = refusal.retry_delay.or_else(|| without_lease(decision));
            if delay.is_some() {
                details.set_retry_info(delay);
            }
            for rule in refusal.violations {
                details.add_quota_failure_violation(rule, message.clone());
            }
        }
        let mut headers = HeaderMap::new();
        self.add_headers(decision, &mut headers);
        let metadata = tonic::metadata::MetadataMap::from_headers(headers);
        Status::with_error_details_and_metadata(code, message, details, metadata)
    }
}

impl Refusal {
    /// Returns the refusal that a status of gRPC is; `None` if it should not be repeated.
    pub fn of_status(status: &Status) -> Option<Self> {
        let info = status.get_details_retry_info();
        let retry_after = info.and_then(|info| info.retry_delay);
        match status.code() {
            Code::Unavailable => Some(Self::over(retry_after)),
            Code::ResourceExhausted if retry_after.is_some() => Some(Self::over(retry_after)),
            _ => None,
        }
    }
}
