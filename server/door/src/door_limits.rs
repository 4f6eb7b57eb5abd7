//! The limits of a door. A server hands them in, with their texts and bounds, and shows their figures.

use std::sync::Arc;

use crate::limit::Limit;

/// Limits of a door. Several doors may share one.
#[derive(Clone, Debug, Default)]
pub struct DoorLimits {
    /// Connections.
    pub connections: Arc<Limit>,
    /// Connections of one caller.
    pub connections_per_caller: Arc<Limit>,
    /// Calls in progress on one connection.
    pub streams_per_connection: Arc<Limit>,
    /// Frames a second on one connection that carry no call.
    pub control_frames: Arc<Limit>,
    /// Longest time for a handshake, headers or a message to arrive, and for a client to read an answer.
    pub patience: Arc<Limit>,
    /// Bytes in a message.
    pub message_bytes: Arc<Limit>,
    /// Bytes in a message that may be large.
    pub large_message_bytes: Arc<Limit>,
    /// Bytes in incomplete messages.
    pub incoming_bytes: Arc<Limit>,
    /// Bytes in incomplete messages of one caller.
    pub incoming_bytes_per_caller: Arc<Limit>,
    /// Bytes in unread answers.
    pub outgoing_bytes: Arc<Limit>,
    /// Bytes in unread answers to one caller.
    pub outgoing_bytes_per_caller: Arc<Limit>,
    /// Calls a second of one caller.
    pub calls_per_caller: Arc<Limit>,
    /// Vital calls a second of one caller.
    pub vital_calls_per_caller: Arc<Limit>,
    /// Longest time for looks each second for one caller.
    pub look_time_per_caller: Arc<Limit>,
    /// Longest time for handshakes each second for one caller.
    pub handshake_time_per_caller: Arc<Limit>,
    /// Unknown tokens a second of one caller.
    pub unknown_tokens_per_caller: Arc<Limit>,
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::limit::LimitTexts;

    /// Limits with these bounds on connections, and with bounds elsewhere that tests do not reach.
    pub(crate) fn limits(connections: u64, per_caller: u64) -> DoorLimits {
        let limit = |max| {
            let limit = Limit::new(LimitTexts::default());
            limit.set_max(max);
            Arc::new(limit)
        };
        DoorLimits {
            connections: limit(connections),
            connections_per_caller: limit(per_caller),
            streams_per_connection: limit(64),
            control_frames: limit(200),
            patience: limit(10_000),
            message_bytes: limit(1_000),
            large_message_bytes: limit(10_000),
            incoming_bytes: limit(1 << 20),
            incoming_bytes_per_caller: limit(1 << 20),
            outgoing_bytes: limit(1 << 20),
            outgoing_bytes_per_caller: limit(1 << 20),
            calls_per_caller: limit(10),
            vital_calls_per_caller: limit(10),
            look_time_per_caller: limit(100),
            handshake_time_per_caller: limit(100),
            unknown_tokens_per_caller: limit(10),
        }
    }
}
