//! Clients that follow the rules: an instance for each open watch.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use doorward_clock::Instant;
use doorward_door::overload;
use doorward_proto::admin::v1::{
    ListInstancesResponse, RulesInstance, RunningRules, WatchRulesRequest,
};
use doorward_session::time::millis;
use parking_lot::Mutex;
use tonic::Status;

/// Largest number of instances. With the largest reports they take 128 MiB.
pub const INSTANCES_MAX: usize = 4_096;

/// Largest number of instances of one identity, or else address.
pub const INSTANCES_PER_CALLER_MAX: usize = 256;

/// Largest report of an instance, in bytes: 256 domains with long names.
pub const REPORT_BYTES_MAX: usize = 32 * 1024;

/// Largest name of an instance, in bytes.
pub const NAME_BYTES_MAX: usize = 256;

/// Largest number of instances on a page, which is then within 4 MiB.
const PAGE_MAX: usize = 100;

/// Open watches, in the order in which they began.
#[derive(Debug, Default)]
pub struct Instances(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    by_number: BTreeMap<u64, Instance>,
    last: u64,
    refused: u64,
}

#[derive(Debug)]
struct Instance {
    who: String,
    report: RulesInstance,
    connected_at: Instant,
    reported_at: Instant,
}

/// An open watch. Its instance is gone when this is dropped.
#[derive(Debug)]
pub struct OpenInstance {
    instances: Arc<Instances>,
    number: u64,
}

impl Instances {
    /// Adds an instance by its first message. `who`: the identity, or else the address.
    ///
    /// # Errors
    ///
    /// If there are too many.
    pub fn add(
        self: &Arc<Self>,
        first: WatchRulesRequest,
        peer: String,
        who: String,
        now: Instant,
    ) -> Result<OpenInstance, Status> {
        let mut open = self.0.lock();
        let all = open.by_number.values();
        let own = all.filter(|it| it.who == who).count();
        let problem = match (own, open.by_number.len()) {
            (INSTANCES_PER_CALLER_MAX.., _) => Some(format!(
                "there are {own} instances of this caller already; close some"
            )),
            (_, INSTANCES_MAX..) => Some(format!(
                "there are {INSTANCES_MAX} instances already; ask another server"
            )),
            _ => None,
        };
        if let Some(problem) = problem {
            open.refused += 1;
            return Err(overload::full(problem, open.refused - 1));
        }
        open.last += 1;
        let number = open.last;
        let instance = Instance {
            who,
            report: RulesInstance {
                name: first.instance,
                peer,
                domains: first.domains,
                running: first.running,
                problem: first.problem,
                ..RulesInstance::default()
            },
            connected_at: now,
            reported_at: now,
        };
        open.by_number.insert(number, instance);
        drop(open);
        Ok(OpenInstance {
            instances: Arc::clone(self),
            number,
        })
    }

    /// Returns a page, and the token of the next one.
    ///
    /// # Errors
    ///
    /// If the token is invalid.
    pub fn list(&self, token: &str, now: Instant) -> Result<ListInstancesResponse, Status> {
        let invalid = |_| Status::invalid_argument("the token is invalid; give next_token");
        let after: u64 = match token {
            "" => 0,
            token => token.parse().map_err(invalid)?,
        };
        let open = self.0.lock();
        let rest = (Bound::Excluded(after), Bound::Unbounded);
        let mut rest = open.by_number.range(rest).peekable();
        let mut last = after;
        let page = rest.by_ref().take(PAGE_MAX).map(|(number, it)| {
            last = *number;
            RulesInstance {
                connected_ms: millis(now - it.connected_at),
                since_ms: millis(now - it.reported_at),
                ..it.report.clone()
            }
        });
        let instances = page.collect();
        let next_token = rest.peek().map(|_| last.to_string());
        Ok(ListInstancesResponse {
            instances,
            next_token,
        })
    }
}

impl OpenInstance {
    /// Takes a report: the versions that the client runs, and its problem.
    pub fn report(&self, running: Vec<RunningRules>, problem: Option<String>, now: Instant) {
        let mut open = self.instances.0.lock();
        let Some(instance) = open.by_number.get_mut(&self.number) else {
            return;
        };
        if instance.report.running != running || instance.report.problem != problem {
            instance.report.running = running;
            instance.report.problem = problem;
            instance.reported_at = now;
        }
    }
}

impl Drop for OpenInstance {
    fn drop(&mut self) {
        self.instances.0.lock().by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_are_bounded_listed_in_pages_and_gone_when_dropped() {
        let (instances, now) = (Arc::new(Instances::default()), Instant::now());
        let named = |name: usize| WatchRulesRequest {
            instance: name.to_string(),
            ..WatchRulesRequest::default()
        };
        let add = |name: usize| {
            let who = (name / INSTANCES_PER_CALLER_MAX).to_string();
            let peer = "192.0.2.1".to_owned();
            instances.add(named(name), peer, who, now)
        };
        let open: Vec<_> = (0..INSTANCES_PER_CALLER_MAX).flat_map(add).collect();
        assert_eq!(open.len(), INSTANCES_PER_CALLER_MAX);
        let refused = |name| add(name).unwrap_err().message().to_owned();
        let own = "there are 256 instances of this caller already; close some";
        assert_eq!(refused(0), own);
        let others = INSTANCES_PER_CALLER_MAX..INSTANCES_MAX;
        let others: Vec<_> = others.flat_map(add).collect();
        assert_eq!(open.len() + others.len(), INSTANCES_MAX);
        let all = "there are 4096 instances already; ask another server";
        assert_eq!(refused(INSTANCES_MAX), all);
        let (mut names, mut token) = (Vec::new(), Some(String::new()));
        while let Some(page) = token {
            let listed = instances.list(&page, now).unwrap();
            assert!((1..=PAGE_MAX).contains(&listed.instances.len()));
            names.extend(listed.instances.into_iter().map(|it| it.name));
            token = listed.next_token;
        }
        let expected: Vec<_> = (0..INSTANCES_MAX).map(|name| name.to_string()).collect();
        assert_eq!(names, expected);
        drop((open, others));
        let none = ListInstancesResponse::default();
        assert_eq!(instances.list("", now).unwrap(), none);
        assert!(instances.list("x", now).is_err());
    }
}
