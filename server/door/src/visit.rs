//! A connection at the door that it came through.

use std::sync::Arc;

use crate::connection::Connection;
use crate::door::Door;

/// A connection, and its door. Copies share both.
#[derive(Clone, Debug)]
pub struct Visit {
    /// The door.
    pub door: Arc<Door>,
    /// The connection.
    pub connection: Arc<Connection>,
}
