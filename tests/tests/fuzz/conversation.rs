//! What happens to a server or a client, one thing after another, as one input: a protobuf message, so
//! that it is changed as the messages inside of it are.

/// Happens in that order.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Conversation {
    #[prost(message, repeated, tag = "1")]
    pub steps: Vec<Step>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Step {
    #[prost(oneof = "Event", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9")]
    pub event: Option<Event>,
}

/// Messages stand as they come from the wire: they may be none.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Event {
    /// A `GetCapacityRequest`.
    #[prost(bytes = "vec", tag = "1")]
    GetCapacity(Vec<u8>),
    /// A `GetServerCapacityRequest` by a call.
    #[prost(bytes = "vec", tag = "2")]
    GetServerCapacity(Vec<u8>),
    /// The same on a stream.
    #[prost(bytes = "vec", tag = "3")]
    OnStream(Vec<u8>),
    /// A `ReleaseCapacityRequest`.
    #[prost(bytes = "vec", tag = "4")]
    ReleaseCapacity(Vec<u8>),
    /// An answer, of whichever kind is awaited.
    #[prost(bytes = "vec", tag = "5")]
    Answer(Vec<u8>),
    /// So many milliseconds pass.
    #[prost(uint64, tag = "6")]
    Wait(u64),
    /// Another mastership begins, of that epoch; 0: it is lost.
    #[prost(uint64, tag = "7")]
    Mastership(u64),
    /// Other templates are in force, of a few.
    #[prost(uint32, tag = "8")]
    Templates(u32),
    /// The connection broke.
    #[prost(bool, tag = "9")]
    Lost(bool),
}

/// Steps that are played, at most.
pub const STEPS_MAX: usize = 64;

/// A wait is no longer: forty years.
pub const WAIT_MAX_MS: u64 = 40 * 365 * 86_400_000;
