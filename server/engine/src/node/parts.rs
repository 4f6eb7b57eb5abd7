//! Calls that name many resources, done a part at a time.
//!
//! A request may name a thousand resources, and whoever calls the node holds up all others meanwhile. So such a call is
//! an object of its own, outside of the node, that knows how far it has come. Each [`InParts::next_part`] does a
//! bounded part of it, some tens of microseconds, and others may call the node in between.
//!
//! That is allowed because each resource is asked for, answered and released by itself: a request of many resources is
//! the same as a request for each of them, one after the other, under one number. What happens to a resource between
//! two parts came before the request or after it. If mastership is lost in between, the answer says so; if it is lost and
//! won again, all is answered by the new one. A call that is given up has done what it has done, as if its answer had
//! been lost.
//!
//! What a part takes is counted in *steps*, and so is what [`Node::handle_timeout`] takes. What must be done first to a
//! resource that is asked for counts too: other templates that it has to hear of, leases that have ended.

use crate::id::MastershipId;
use crate::node::Node;
use crate::time::Time;

/// A call that is done a part at a time. See the [module](self).
pub trait InParts {
    /// What is answered when all is done.
    type Answer;

    /// Does the next part. Returns the answer once there is nothing left to do; after that, it is not called again.
    fn next_part(&mut self, node: &mut Node, now: Time) -> Option<Self::Answer>;
}

impl<C: InParts> InParts for &mut C {
    type Answer = C::Answer;

    fn next_part(&mut self, node: &mut Node, now: Time) -> Option<C::Answer> {
        (**self).next_part(node, now)
    }
}

/// Steps of one part, but for what the last thing takes that is done in it. A step is a tenth of a microsecond, or a
/// little more.
pub(super) const STEPS_PER_PART: usize = 256;

/// What a resource takes that is found, changed and put in its place again. So a part has room for ten.
pub(super) const STEPS_PER_RESOURCE: usize = 28;

/// What a point of a demand curve takes that is put in the place of another one.
pub(super) const STEPS_PER_POINT: usize = 4;

/// The mastership in which a call was begun.
#[derive(Debug, Default)]
pub(super) struct DoneIn(Option<MastershipId>);

impl DoneIn {
    /// A part begins. Returns whether there is another mastership than in the part before: it knows nothing of what
    /// was granted, asked or heard then.
    pub(super) fn is_another(&mut self, node: &Node) -> bool {
        let before = self.0.replace(node.mastership_id);
        before.is_some_and(|before| before != node.mastership_id)
    }
}

impl Node {
    /// Does all parts of a call at once.
    pub(super) fn do_all<C: InParts>(&mut self, mut call: C, now: Time) -> C::Answer {
        loop {
            if let Some(answer) = call.next_part(self, now) {
                return answer;
            }
        }
    }

    /// A part begins: nothing is spent yet.
    pub(super) fn begin_part(&mut self) {
        self.steps = 0;
    }

    /// So many steps were done.
    pub(super) fn note_steps(&mut self, steps: usize) {
        self.steps = self.steps.saturating_add(steps);
    }

    /// How many steps are left of this part.
    pub(super) fn steps_left(&self) -> usize {
        STEPS_PER_PART.saturating_sub(self.steps)
    }

    /// Whether there are any.
    pub(super) fn has_steps_left(&self) -> bool {
        self.steps < STEPS_PER_PART
    }
}
