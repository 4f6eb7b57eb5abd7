//! Limits that the doors of a server enforce.

use std::collections::BTreeMap;
use std::sync::Arc;

use doorward_door::door_limits::DoorLimits;

use crate::limits::{ServerLimit, ServerLimits};

/// Bounds of the limits that no node enforces.
pub type LimitBounds = BTreeMap<ServerLimit, u64>;

impl ServerLimits {
    /// Sets bounds.
    pub fn set_bounds(&self, bounds: &LimitBounds) {
        for (limit, max) in bounds {
            self.of(*limit).set_max(*max);
        }
    }

    /// Returns the limits of the door for gRPC.
    pub fn of_grpc(&self) -> DoorLimits {
        let of = |limit| Arc::clone(self.of(limit));
        DoorLimits {
            connections: of(ServerLimit::Connections),
            connections_per_caller: of(ServerLimit::ConnectionsPerAddress),
            streams_per_connection: of(ServerLimit::StreamsPerConnection),
            control_frames: of(ServerLimit::ControlFrames),
            patience: of(ServerLimit::Patience),
            message_bytes: of(ServerLimit::MessageBytes),
            large_message_bytes: of(ServerLimit::ChildMessageBytes),
            incoming_bytes: of(ServerLimit::IncomingBytes),
            incoming_bytes_per_caller: of(ServerLimit::IncomingBytesPerAddress),
            outgoing_bytes: of(ServerLimit::OutgoingBytes),
            outgoing_bytes_per_caller: of(ServerLimit::OutgoingBytesPerAddress),
            calls_per_caller: of(ServerLimit::CallsPerAddress),
            vital_calls_per_caller: of(ServerLimit::CallsPerAddress),
            look_time_per_caller: of(ServerLimit::LookTimePerAddress),
            handshake_time_per_caller: of(ServerLimit::HandshakeTimePerAddress),
            unknown_tokens_per_caller: of(ServerLimit::UnknownTokensPerAddress),
        }
    }

    /// Returns the limits of the door for HTTP.
    pub fn of_http(&self) -> DoorLimits {
        let of = |limit| Arc::clone(self.of(limit));
        DoorLimits {
            connections: of(ServerLimit::HttpConnections),
            connections_per_caller: of(ServerLimit::HttpConnectionsPerAddress),
            calls_per_caller: of(ServerLimit::HttpRequestsPerAddress),
            ..self.of_grpc()
        }
    }
}
