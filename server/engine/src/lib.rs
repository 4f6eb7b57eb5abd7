//! Doorward's engine: the state machine of a server node, with no I/O at all.
//!
//! It reads no clock, draws no entropy, spawns nothing, logs nothing and knows no wire format. The
//! same configuration, seed and inputs at the same times give the same outputs, on every machine.
//! The server runs it on the real clock, the simulator on a virtual one.
//!
//! [`node::Node`] is where to start. The contract of its methods: one mutation, then drain the
//! `poll_*` methods; time never runs backwards.
//!
//! ```
//! use std::time::Duration;
//!
//! use doorward_engine::amount::Amount;
//! use doorward_engine::claims::Subclients;
//! use doorward_engine::id::{HolderName, ResourceId};
//! use doorward_engine::node::mastership::{Mastership, Outcome};
//! use doorward_engine::node::{Config, Node};
//! use doorward_engine::messages::{Ask, GetCapacity};
//! use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
//! use doorward_engine::time::Time;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let templates = Templates::parse(&[TemplateSpec {
//!     identifier_glob: Some("db/*".into()),
//!     capacity: Some(100.0),
//!     kind: Some(AlgorithmKind::FairShare),
//!     lease_length: Some(Duration::from_secs(60)),
//!     refresh_interval: Some(Duration::from_secs(5)),
//!     learning_mode_duration: Some(Duration::ZERO),
//!     ..TemplateSpec::default()
//! }])
//! .map_err(|problems| format!("{problems:?}"))?;
//!
//! let mut node = Node::new(Config::default(), templates);
//! node.handle_mastership(Mastership::Master { epoch: Some(1) }, Time::ZERO);
//!
//! let request = GetCapacity {
//!     client: HolderName::new("frontend-1")?,
//!     incarnation: None,
//!     caller: None,
//!     sequence: Some(1),
//!     asks: vec![Ask {
//!         resource: ResourceId::new("db/orders")?,
//!         priority: 0,
//!         weight: Subclients::ONE,
//!         wants: Amount::new(30.0)?,
//!         has: None,
//!         budget: None,
//!     }],
//! };
//! let Outcome::Served(reply) = node.handle_get_capacity(&request, Time::from_secs(1)) else {
//!     panic!("this node is the master");
//! };
//! assert_eq!(reply.leases[0].capacity, Amount::new(30.0)?);
//! # Ok(())
//! # }
//! ```

pub mod admission;
pub mod amount;
mod budget;
pub mod claims;
mod continuity;
pub mod division;
pub mod exact_sum;
mod holders;
pub mod id;
pub mod messages;
pub mod node;
pub mod plan;
pub mod resource;
pub mod rounding;
mod split_table;
pub mod templates;

pub use doorward_time as time;
