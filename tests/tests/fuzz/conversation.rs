//! Events of a server or a client as one input: a protobuf message, so that it can be mutated like the messages inside
//! it.

/// Events in their order.
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

/// Messages as bytes from the wire, which need not be valid.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Event {
    /// A `GetCapacityRequest`.
    #[prost(bytes = "vec", tag = "1")]
    GetCapacity(Vec<u8>),
    /// A `GetServerCapacityRequest` by a call.
    #[prost(bytes = "vec", tag = "2")]
    GetServerCapacity(Vec<u8>),
    /// The same request on a stream.
    #[prost(bytes = "vec", tag = "3")]
    OnStream(Vec<u8>),
    /// A `ReleaseCapacityRequest`.
    #[prost(bytes = "vec", tag = "4")]
    ReleaseCapacity(Vec<u8>),
    /// An answer of the awaited kind.
    #[prost(bytes = "vec", tag = "5")]
    Answer(Vec<u8>),
    /// Milliseconds that pass.
    #[prost(uint64, tag = "6")]
    Wait(u64),
    /// A new mastership of that epoch; 0: the mastership is lost.
    #[prost(uint64, tag = "7")]
    Mastership(u64),
    /// Other templates in force, of a few.
    #[prost(uint32, tag = "8")]
    Templates(u32),
    /// The connection broke.
    #[prost(bool, tag = "9")]
    Lost(bool),
}

/// Largest number of steps that are played.
pub const STEPS_MAX: usize = 64;

/// Longest wait: forty years.
pub const WAIT_MAX_MS: u64 = 40 * 365 * 86_400_000;
