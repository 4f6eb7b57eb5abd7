//! The pure state machine of a Doorward server node.
pub mod algorithm;
pub mod amount;
pub mod claim;
pub mod claim_index;
pub mod exact_sum;
pub mod glob;
pub mod id;
pub mod node;
pub mod request;
pub mod snapshot;
pub mod template;
pub mod time;
