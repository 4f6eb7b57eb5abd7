//! What stands beside a term in etcd of how long leases last, so that a successor knows how long those
//! of its predecessors may be out, if its own templates give shorter ones.
//!
//! Only the templates of the root count, and only where there is an election: a lone server cannot know
//! after a restart. Points in time are as the root's clock shows them. As servers do, a master writes
//! what it hands out before templates count, and takes back what is over while it lives; what its
//! successor finds is as it was when the last one was the master.

use std::time::Duration;

use doorward_engine::template::Templates;
use doorward_engine::time::Time;

/// What is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lengths {
    /// Those that the master goes by.
    templates: Templates,
    /// The longest lease that may be out by others before these …
    older: Duration,
    /// … until then.
    older_until: Time,
}

impl Lengths {
    /// What a master writes that begins now, and how long its predecessors' leases may last; `former`
    /// is what stood there. `vacant_since` is the last time at which a predecessor may have granted
    /// anything.
    pub(crate) fn succeed(
        former: Option<&Self>,
        templates: Templates,
        vacant_since: Time,
    ) -> (Self, Duration) {
        let older = former.map_or(Duration::ZERO, |former| {
            let older = match former.older_until > vacant_since {
                true => former.older,
                false => Duration::ZERO,
            };
            match former.templates.lengths_digest() == templates.lengths_digest() {
                true => older,
                false => older.max(former.templates.longest_lease()),
            }
        });
        let written = Self {
            templates,
            older,
            older_until: vacant_since + older,
        };
        (written, older)
    }

    /// The master goes by other templates from now on.
    pub(crate) fn change(&mut self, templates: Templates, local: Time) {
        let outlasts = self.templates.outlasts(&templates);
        if self.older_until <= local {
            self.older = Duration::ZERO;
        }
        self.older = self.older.max(outlasts);
        self.older_until = self.older_until.max(local + outlasts);
        self.templates = templates;
    }
}

#[cfg(test)]
mod tests {
    use doorward_engine::template::{AlgorithmKind, TemplateSpec};

    use super::*;

    fn templates(capacity: f64, lease: u64) -> Templates {
        Templates::parse(&[TemplateSpec {
            identifier_glob: Some("shared".to_owned()),
            capacity: Some(capacity),
            kind: Some(AlgorithmKind::FairShare),
            lease_length: Some(Duration::from_secs(lease)),
            refresh_interval: Some(Duration::from_secs(1)),
            ..TemplateSpec::default()
        }])
        .unwrap()
    }

    /// What the next of a chain of masters learns for, in seconds.
    #[track_caller]
    fn check(written: &mut Lengths, lease: u64, vacant_since: u64, expected: u64) {
        let since = Time::from_secs(vacant_since);
        let (next, longer) = Lengths::succeed(Some(written), templates(100.0, lease), since);
        assert_eq!(longer, Duration::from_secs(expected));
        *written = next;
    }

    #[test]
    fn a_successor_is_told_of_longer_leases_while_they_may_be_out() {
        let (mut written, longer) = Lengths::succeed(None, templates(100.0, 60), Time::ZERO);
        assert_eq!(longer, Duration::ZERO);
        check(&mut written, 60, 50, 0);
        written.change(templates(100.0, 10), Time::from_secs(100));
        // It counts from when the node became vacant, as the master may have confirmed them until then.
        check(&mut written.clone(), 10, 120, 60);
        check(&mut written.clone(), 10, 161, 0);
        // One that begins while they may be out hands it on, and so does the next.
        check(&mut written, 10, 120, 60);
        check(&mut written, 10, 130, 60);
        check(&mut written, 10, 191, 0);
    }

    #[test]
    fn a_successor_with_other_templates_is_told_of_those_its_predecessor_had() {
        let (mut written, _) = Lengths::succeed(None, templates(100.0, 60), Time::ZERO);
        check(&mut written, 10, 50, 60);
        check(&mut written, 20, 115, 10);
    }

    #[test]
    fn an_edit_of_the_capacity_makes_nobody_learn_for_longer() {
        let (mut written, _) = Lengths::succeed(None, templates(100.0, 60), Time::ZERO);
        written.change(templates(10.0, 60), Time::from_secs(10));
        check(&mut written, 60, 20, 0);
    }
}
