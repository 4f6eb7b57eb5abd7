//! A server of the world: a node's process, and its connection to the parent.

use std::time::Duration;

use doorward_engine::id::{HolderName, Incarnation};
use doorward_engine::node::{Config, Node};
use doorward_engine::request::server::Via;
use doorward_engine::resource::parent_request::Pace;
use doorward_engine::template::Templates;
use doorward_engine::time::Time;

pub struct Server {
    pub name: HolderName,
    pub node: Node,
    pub parent: Option<usize>,
    pub up: bool,
    /// How it speaks to its parent.
    pub via: Via,
    /// Counts connections to the parent; a stream that broke takes what is on its way with it.
    pub connection: u64,
    /// Nothing gets through to the parent.
    pub is_cut: bool,
    /// How fast its clock is; 1 is right.
    pub speed: f64,
    config: Config,
}

impl Server {
    /// A process that is not started yet; the templates are for a root.
    pub fn new(config: Config, parent: Option<usize>, via: Via) -> Self {
        let name = HolderName::new(&config.name).unwrap();
        Self {
            name,
            node: Node::new(config.clone(), Templates::default()),
            parent,
            up: false,
            via,
            connection: 0,
            is_cut: false,
            speed: 1.0,
            config,
        }
    }

    /// Another process of the node, which knows nothing but templates, and that it is no master yet.
    pub fn start(&mut self, process: u64, templates: Templates) {
        self.config.incarnation = Incarnation::new(process).unwrap();
        self.node = Node::new(self.config.clone(), templates);
        self.node.handle_upstream_pace(self.pace(), Time::ZERO);
        self.up = true;
    }

    /// The same process makes its node anew, which knows no more than how long leases may last.
    pub fn remake(&mut self, process: u64) {
        let incarnation = Incarnation::new(process).unwrap();
        self.config.incarnation = incarnation;
        self.node = self.node.anew(incarnation);
        self.node.handle_upstream_pace(self.pace(), Time::ZERO);
    }

    /// How soon what changes goes up, as the server's sessions have it.
    pub fn pace(&self) -> Pace {
        match self.via {
            Via::Stream => Pace {
                round: Duration::from_millis(50),
                slow: Duration::from_millis(500),
            },
            Via::Poll => {
                let floor = self.config.refresh_floor.max(Duration::from_millis(100));
                let floor = floor + floor / 16;
                Pace {
                    round: floor,
                    slow: floor,
                }
            }
        }
    }

    /// What its clock shows at a time.
    pub fn shows(&self, now: Time) -> Time {
        if self.speed == 1.0 {
            now
        } else {
            Time::from_nanos((now.as_nanos() as f64 * self.speed) as u64)
        }
    }

    /// When its clock shows that, or right after.
    pub fn truly(&self, shown: Time) -> Time {
        if self.speed == 1.0 {
            shown
        } else {
            Time::from_nanos((shown.as_nanos() as f64 / self.speed) as u64 + 2)
        }
    }
}
