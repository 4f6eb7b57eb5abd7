//! A server of the world: a node's process, and its connection to the parent.

use std::time::Duration;

use doorward_engine::id::{HolderName, Incarnation};
use doorward_engine::messages::Via;
use doorward_engine::node::{Config, Node};
use doorward_engine::resource::parent::ParentPace;
use doorward_engine::templates::Templates;
use doorward_engine::time::Time;

pub struct Server {
    pub name: HolderName,
    pub node: Node,
    pub parent: Option<usize>,
    pub up: bool,
    /// Its kind of connection to the parent.
    pub via: Via,
    /// Number of connections to the parent so far. Messages on a broken stream are lost.
    pub connection: u64,
    /// Whether no message passes between it and the parent.
    pub is_cut: bool,
    /// Speed of its clock; 1 is right.
    pub speed: f64,
    config: Config,
}

impl Server {
    /// Returns a process that is not started yet. The templates are for a root.
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

    /// Starts another process of the node. It knows only templates, and is no master yet.
    pub fn start(&mut self, process: u64, templates: Templates) {
        self.config.incarnation = Incarnation::new(process).unwrap();
        self.node = Node::new(self.config.clone(), templates);
        self.node.handle_upstream_pace(self.pace(), Time::ZERO);
        self.up = true;
    }

    /// Lets the same process make its node again. The new node knows only how long leases may last.
    pub fn remake(&mut self, process: u64) {
        let incarnation = Incarnation::new(process).unwrap();
        self.config.incarnation = incarnation;
        self.node = self.node.restarted(incarnation);
        self.node.handle_upstream_pace(self.pace(), Time::ZERO);
    }

    /// Returns the delays of requests to the parent, as in the server's sessions.
    pub fn pace(&self) -> ParentPace {
        match self.via {
            Via::Stream => ParentPace {
                round: Duration::from_millis(50),
                slow: Duration::from_millis(500),
            },
            Via::Poll => {
                let floor = self.config.refresh_floor.max(Duration::from_millis(100));
                let floor = floor + floor / 16;
                ParentPace {
                    round: floor,
                    slow: floor,
                }
            }
        }
    }

    /// Returns the time of its clock at a real time.
    pub fn shows(&self, now: Time) -> Time {
        if self.speed == 1.0 {
            now
        } else {
            Time::from_nanos((now.as_nanos() as f64 * self.speed) as u64)
        }
    }

    /// Returns the real time at which its clock shows that time, or right after.
    pub fn truly(&self, shown: Time) -> Time {
        if self.speed == 1.0 {
            shown
        } else {
            Time::from_nanos((shown.as_nanos() as f64 / self.speed) as u64 + 2)
        }
    }
}
