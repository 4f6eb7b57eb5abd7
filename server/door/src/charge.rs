//! Bytes of messages that wait: each caller has a budget, and all share one.

use tonic::Status as RpcStatus;

use crate::limit;
use crate::visit::Visit;

/// Bytes of a visit that count in the budgets of incoming messages until this is dropped.
#[derive(Debug)]
pub struct Charge {
    pub(crate) visit: Visit,
    bytes: u64,
}

impl Charge {
    /// Counts nothing yet.
    pub(crate) const fn new(visit: Visit) -> Self {
        Self { visit, bytes: 0 }
    }

    /// Returns the bytes that count.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts more bytes.
    ///
    /// # Errors
    ///
    /// The answer to the call, if there is no room.
    pub(crate) fn add(&mut self, more: u64) -> Result<(), RpcStatus> {
        if more == 0 {
            return Ok(());
        }
        let Visit { door, connection } = &self.visit;
        let (limits, used) = (door.limits(), &connection.of_caller.incoming);
        if !limits.incoming_bytes_per_caller.take_of(used, more) {
            connection.pause(door.now());
            return Err(door.exhausted(&limits.incoming_bytes_per_caller));
        }
        if !limits.incoming_bytes.take(more) {
            limit::give_back(used, more);
            return Err(door.exhausted(&limits.incoming_bytes));
        }
        self.bytes += more;
        Ok(())
    }

    /// Returns bytes to the budgets.
    pub(crate) fn refund(&mut self, less: u64) {
        if less > 0 {
            let Visit { door, connection } = &self.visit;
            limit::give_back(&connection.of_caller.incoming, less);
            door.limits().incoming_bytes.give_back(less);
            self.bytes -= less;
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.refund(self.bytes);
    }
}
