//! The election of the node's master: what the candidate says ([`doorward_session::candidate`]), applied to the node.
//!
//! In a root with an election, the master tells in etcd how long leases last before templates with other lease lengths
//! come into force ([`doorward_session::candidate::older_leases`]). So new templates wait until the candidate lets them
//! through. In other servers they come into force at once.

use std::collections::VecDeque;

use doorward_engine::node::Node;
use doorward_engine::node::marks::{FoundMarks, Mark};
use doorward_engine::node::mastership::{Mastership, Term};
use doorward_engine::node::reload::{ActiveTemplates, PreparedTemplates};
use doorward_engine::templates::Templates;
use doorward_engine::time::Time;
use doorward_session::candidate::standing::Standing;
use doorward_session::candidate::store::{Role, TreePlace};
use doorward_session::candidate::{
    self, Candidate, CandidateAction, CandidateConfig, NextTemplates,
};

use crate::output::{Output, ToEtcd};

/// Part of a server in the election of its node.
#[derive(Debug)]
pub(crate) struct Election {
    pub(crate) candidate: Candidate,
    /// Standing that the node has.
    applied: Standing,
    /// Templates that are not in force yet. The candidate has the first of them.
    waiting: VecDeque<PreparedTemplates>,
}

/// Returns the properties of templates in force that an election uses. `has_history`: whether earlier versions can be
/// read.
pub fn templates_in_force(templates: &Templates, has_history: bool) -> candidate::ActiveTemplates {
    candidate::ActiveTemplates {
        digest: digest(templates).into(),
        longest: templates.longest_lease(),
        has_history,
    }
}

/// Returns the properties of the next templates that an election uses.
fn next(prepared: &PreparedTemplates) -> NextTemplates {
    let next = prepared.templates();
    NextTemplates {
        digest: digest(next).into(),
        longest: next.longest_lease(),
        outlasts: prepared.outlasts(),
        learning_outlasts: prepared.learning_outlasts(),
    }
}

/// Returns a digest of the lease lengths that templates give.
fn digest(templates: &Templates) -> String {
    format!("{:016x}", templates.lengths_digest())
}

impl Election {
    /// Takes part from now on.
    pub(crate) fn new(config: CandidateConfig, place: TreePlace, now: Time) -> Self {
        Self {
            candidate: Candidate::new(config, place, now),
            applied: Standing::Unknown,
            waiting: VecDeque::new(),
        }
    }

    /// Returns the standing that the node has.
    pub(crate) const fn standing(&self) -> &Standing {
        &self.applied
    }

    /// Whether new templates wait for the candidate: it is one of the root, where templates say how long leases last.
    pub(crate) fn holds_templates(&self) -> bool {
        self.candidate.config().templates.is_some()
    }

    /// Takes new templates, which come into force after all earlier ones.
    pub(crate) fn handle_templates(&mut self, prepared: PreparedTemplates, node: &Node, now: Time) {
        self.waiting.push_back(prepared);
        if self.waiting.len() == 1 {
            self.hand_in_templates(node.active_templates(), now);
        }
    }

    /// Passes the first waiting templates to the candidate.
    fn hand_in_templates(&mut self, active: &ActiveTemplates, now: Time) {
        let Some(first) = self.waiting.pop_front() else {
            return;
        };
        let prepared = first.prepared_for(active);
        self.candidate.handle_templates(next(&prepared), now);
        self.waiting.push_front(prepared);
    }

    /// Performs the actions of the candidate, and gives the node its standing. Returns the number of templates that
    /// came into force.
    pub(crate) fn drain(
        &mut self,
        node: &mut Node,
        outputs: &mut VecDeque<Output>,
        now: Time,
    ) -> u64 {
        let mut applied = 0;
        while let Some(action) = self.candidate.poll_action() {
            let command = match action {
                CandidateAction::Ask(request) => ToEtcd::Ask(request),
                CandidateAction::AskBeside(request) => ToEtcd::AskBeside(request),
                CandidateAction::MarksWritten => {
                    node.handle_marks_written(now);
                    continue;
                }
                CandidateAction::Report(report) => ToEtcd::Report(report),
                CandidateAction::ApplyTemplates => {
                    if let Some(prepared) = self.waiting.pop_front() {
                        apply(prepared, node, now);
                        applied += 1;
                    }
                    self.candidate.handle_applied(now);
                    self.hand_in_templates(node.active_templates(), now);
                    continue;
                }
            };
            outputs.push_back(Output::Etcd(command));
        }
        let standing = self.candidate.standing(now);
        if self.applied != standing {
            match &standing {
                Standing::Master(term) => self.begin_again(*term, node, now),
                Standing::Elsewhere { address, epoch, .. } => {
                    let elsewhere = Mastership::Elsewhere {
                        master_address: address.to_string(),
                        epoch: Some(*epoch),
                    };
                    node.handle_mastership(elsewhere, now);
                }
                Standing::Unknown => node.handle_mastership(Mastership::Unknown, now),
            }
            self.applied = standing;
        }
        applied
    }

    /// Gives the node a term, with the marks that the last master left. If the node has forgotten what it granted, it
    /// learns.
    pub(crate) fn begin_again(&mut self, term: Term, node: &mut Node, now: Time) {
        if !self.candidate.keeps_marks() {
            return node.handle_term(term, now);
        }
        let found = self.candidate.take_found_marks();
        let is_complete = found.is_some();
        let marks = found.unwrap_or_default();
        let found = FoundMarks { marks, is_complete };
        if node.handle_marked_term(term, found, now) && !is_complete {
            self.candidate.forget_marks();
        }
    }

    /// Begins to write marks. Returns whether there are any.
    pub(crate) fn write_marks(&mut self, node: &mut Node, now: Time) -> bool {
        let can_write = self.candidate.can_write_marks();
        let Some(batch) = can_write.then(|| node.poll_mark_writes(now)).flatten() else {
            return false;
        };
        let changes = batch.writes.iter();
        let changes = changes.map(|(id, mark)| (id.as_str().into(), mark.map(Mark::stored)));
        self.candidate
            .write_marks(changes.collect(), batch.count, batch.unmarked_for, now);
        true
    }
}

/// Returns the place of a server in the tree, as far as its node knows it.
pub(crate) fn place(node: &Node, has_parent: bool) -> TreePlace {
    let above = u32::try_from(node.ancestors().len()).ok();
    let above = above.filter(|above| *above > 0);
    let (role, level) = match (has_parent, node.has_child_servers()) {
        (false, _) => (Role::Root, Some(0)),
        (true, true) => (Role::Regional, above),
        (true, false) => (Role::Leaf, above),
    };
    TreePlace { role, level }
}

/// Brings templates into force.
pub(crate) fn apply(prepared: PreparedTemplates, node: &mut Node, now: Time) {
    // If other templates came into force since, it is prepared again.
    let prepared = prepared.prepared_for(node.active_templates());
    let is_next = node.handle_prepared_templates(prepared, now).is_ok();
    debug_assert!(is_next, "they were prepared for those in force");
}
