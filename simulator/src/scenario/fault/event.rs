//! What happens: one key that says what, whose value says to whom; what else there is to say stands beside it.

use std::time::Duration;

use doorward_documents::form::{At, Map, Names};
use doorward_engine::id::ResourceId;
use doorward_engine::template::Templates;

use crate::scenario::choice::{self, clock, elected, node, resource_in_use};
use crate::scenario::declared::{ByHand, FieldRow};
use crate::scenario::fault::{ClientChoice, ClockChoice, NodeChoice, Span};
use crate::scenario::read::Reader;
use crate::scenario::shape::{amount, duration, number, part, record, span, word};
use crate::scenario::templates::templates;
use crate::scenario::yaml::Yaml;

/// How much faster or slower a clock may run: what is beyond is no clock.
const SPEEDS: (f64, f64) = (0.01, 100.0);

/// How long a process takes to start anew, if nothing else is said.
const RESTARTS_WITHIN: Span = (Duration::from_secs(1), Duration::from_secs(1));

kinds! {
    /// What happens.
    #[derive(Clone, Debug)]
    pub enum Event, beside() {
        /// Its master dies with all it knew; there is none for that time, whatever candidates there are, and whatever
        /// else happens to it. If that is less than an election takes, it takes an election.
        Kill as "kill" {
            /// Which.
            node as "kill": NodeChoice = node(), needed("what it happens to");
            /// For how long.
            length as "for": Option<Span> = span(), optional("an election");
        };
        /// The process of its master starts anew, and knows nothing. If the node has other candidates, there is no
        /// master for an election.
        Restart as "restart" {
            /// Which.
            node as "restart": NodeChoice = node(), needed("what it happens to");
            /// For how long it is gone.
            length as "for": Span = span(), or(RESTARTS_WITHIN);
        };
        /// All its servers stop, the candidates too, and start again after that: nobody remembers anything. Who is
        /// elected then finds the last term in etcd, and gives its master time, for nobody saw when it was last
        /// confirmed.
        Stop as "stop" {
            /// Which.
            node as "stop": NodeChoice = node(), needed("what it happens to");
            /// For how long.
            length as "for": Span = span(), needed("how long it lasts");
        };
        /// Nobody reaches etcd for that time; then it has lost what was written, or is again what it was so long
        /// before: keys and leases come and go, and epochs of masterships go back, unless a candidate that is alive
        /// remembers a higher one. Nodes without another candidate have no election, and no epochs.
        Etcd as "etcd" {
            /// To what it was so long ago. Absent: it is wiped.
            back as "etcd": Option<Span> = (), by_hand(Loss);
            /// For how long.
            length as "for": Option<Span> = span(), optional("at once");
        };
        /// Its master hands over to another one, which serves at once; then its process starts anew.
        Elect as "elect" {
            /// Which.
            node as "elect": NodeChoice = node(), needed("what it happens to");
        };
        /// Somebody deletes the key of its master in etcd: its term is over at once, its process lives on, takes part
        /// in the next election, and may win it. Refused of a node without another candidate.
        Depose as "depose" {
            /// Which.
            node as "depose": NodeChoice = elected(), needed("what it happens to");
        };
        /// Elections take that long, at all nodes: those after `kill` without `for`, `freeze`, `isolate` and
        /// `restart`; but no shorter than the leases in etcd last, which `servers: {election}` says. One that has
        /// begun is not changed.
        Elections as "elections" {
            /// From when a master is gone to when its successor serves.
            take as "elections": Span = span(), needed("how long they take");
            /// For how long.
            length as "for": Option<Span> = span(), optional("for ever");
        };
        /// Its master does nothing, and then goes on where it stopped. If the node has other candidates and it takes
        /// longer than an election, one of them is master by then.
        Freeze as "freeze" {
            /// Which.
            node as "freeze": NodeChoice = node(), needed("what it happens to");
            /// For how long.
            length as "for": Span = span(), needed("how long it lasts");
        };
        /// These servers are cut off from etcd, and from nothing else: what they ask does not get *there*, or its
        /// answer not *back*, though it was done. A master goes on for nine tenths of the shortest election after its
        /// last renewal that was confirmed, and decides nothing after that. If it takes longer than an election,
        /// another candidate is master by then. Refused of a node without another candidate.
        Isolate as "isolate" {
            /// Which.
            node as "isolate": NodeChoice = elected(), needed("what it happens to");
            /// Which of its servers.
            servers: NodeServers = word(), or(NodeServers::Master);
            /// What does not get through.
            way: ToEtcd = word(), or(ToEtcd::Both);
            /// For how long.
            length as "for": Span = span(), needed("how long it lasts");
        };
        /// Of what its servers ask etcd, and of the answers, that part is lost; what is not, comes so much later.
        /// Refused of a node without another candidate.
        EtcdLink as "etcd_link" {
            /// Which.
            node as "etcd_link": NodeChoice = elected(), needed("what it happens to");
            /// The part that is lost, of questions and of answers.
            loss: f64 = part(), or(0.0);
            /// How much longer what is not lost takes.
            late: Span = span(), or((Duration::ZERO, Duration::ZERO));
            /// For how long.
            length as "for": Span = span(), needed("how long it lasts");
        };
        /// Its servers that are not the master send whoever asks, clients and child servers, to one another instead
        /// of to the master; one that is alone sends to itself. Refused of a node without another candidate.
        RedirectLoop as "redirect_loop" {
            /// Which.
            node as "redirect_loop": NodeChoice = elected(), needed("what it happens to");
            /// For how long.
            length as "for": Span = span(), needed("how long it lasts");
        };
        /// Whoever looks for its servers, clients and child servers, gets addresses at which nobody is any more, as
        /// many as it has servers, and last of one of those that there are; and no master. Who starts meanwhile knows
        /// the same. Then they get all of them again, and who the master is. Refused of a node without another
        /// candidate.
        StaleAddresses as "stale_addresses" {
            /// Which.
            node as "stale_addresses": NodeChoice = elected(), needed("what it happens to");
            /// For how long.
            length as "for": Span = span(), needed("how long it lasts");
        };
        /// Nothing gets through, to or from that side. A stream on which something was lost carries nothing more; its
        /// server gives it up and connects again.
        Partition as "partition" {
            /// Which.
            node as "partition": NodeChoice = node(), needed("what it happens to");
            /// From whom.
            from as "side": Side = word(), or(Side::All),
                check(|at, side, reader| has_that_side(at, node.as_ref(), *side, reader));
            /// For how long.
            length as "for": Span = span(), needed("how long it lasts");
        };
        /// Their clocks run that fast from then on: 1.01 gains a second in 100. Leases are counted on each one's own
        /// clock, with a margin of a thousandth: beyond that, a client whose clock is slow, or a server whose clock
        /// is fast, may overshoot at the end of a lease.
        Drift as "drift" {
            /// Whose.
            clock as "drift": ClockChoice = clock(), needed("what it happens to");
            /// The speed.
            speed: f64 = number(SPEEDS.0, SPEEDS.1), needed("how fast it runs, as in 1.01");
        };
        /// Their clocks jump ahead.
        Jump as "jump" {
            /// Whose.
            clock as "jump": ClockChoice = clock(), needed("what it happens to");
            /// By how much.
            by: Duration = duration(), needed("how far it jumps ahead");
        };
        /// The operator writes these templates, all of them. A root that is frozen goes by them when it goes on; one
        /// that is cut off from etcd, when it is in touch again or its term is over: it has to write to etcd first
        /// how long leases last. Where leases become shorter, its successor learns for as long as the former ones may
        /// be out. A root without another candidate has nobody who remembers that after a restart: give
        /// `learning_mode_duration` the longest that may still be out.
        Edit as "edit" {
            /// All of them.
            templates as "edit": Templates = templates(), needed("what it happens to");
        };
        /// They stop without a word, and start again.
        Crash as "crash" {
            /// Which.
            clients as "crash": ClientChoice = record(), needed("what it happens to");
            /// For how long.
            length as "for": Option<Span> = span(), optional("for ever");
        };
        /// They finish the work that they have begun, release all that they have, and end; then they start again.
        Leave as "leave" {
            /// Which.
            clients as "leave": ClientChoice = record(), needed("what it happens to");
            /// For how long.
            length as "for": Option<Span> = span(), optional("for ever");
        };
        /// They finish the work that they have begun with a resource, and release it; then they use it again.
        Close as "close" {
            /// Which.
            clients as "close": ClientChoice = record(), needed("what it happens to");
            /// Which of those that they use. Absent: the first.
            resource: Option<ResourceId> = resource_in_use(), optional("the first");
            /// For how long.
            length as "for": Option<Span> = span(), optional("for ever");
        };
        /// A second process starts under the same name, and both live. Half of the clients of a node are connected to
        /// the second one. Of a client, the second one wants what the first one wants then. Refused of the root and
        /// of nodes with other candidates.
        Twin as "twin" {
            /// Whose.
            of as "twin": ClockChoice = choice::twin(), needed("what it happens to");
            /// For how long.
            length as "for": Span = span(), needed("how long it lasts");
        };
        /// They want so much more from then on.
        Surge as "surge" {
            /// Which.
            clients as "surge": ClientChoice = record(), needed("what it happens to");
            /// By how much.
            by: f64 = amount(), needed("how much");
            /// Which of those that they use. Absent: the first.
            resource: Option<ResourceId> = resource_in_use(), optional("the first");
        };
        /// They want that much from then on, whatever their curve says.
        Demand as "demand" {
            /// Which.
            clients as "demand": ClientChoice = record(), needed("what it happens to");
            /// How much.
            wants: f64 = amount(), needed("how much");
            /// Which of those that they use. Absent: the first.
            resource: Option<ResourceId> = resource_in_use(), optional("the first");
        };
    }
}

/// A root has no parent from which it could be cut off.
fn has_that_side(at: &At<'_>, node: Option<&NodeChoice>, side: Side, reader: &mut Reader<'_>) {
    let is_root = node.and_then(NodeChoice::only) == Some(0);
    if is_root && side == Side::Parent && !reader.may_be_idle {
        let message = "is parent, and the root has none; give below or all";
        reader.problems.wrong(at, message);
    }
}

/// What etcd loses: `etcd: wiped`, or `etcd: restored` with how old the backup is.
struct Loss;

impl ByHand for Loss {
    type Value = Option<Span>;

    const NAMES: &'static [&'static Names] = &[&["etcd"], &["back"]];

    fn read(map: &Map<'_>, reader: &mut Reader<'_>) -> Option<Option<Span>> {
        let what = map.need(&["etcd"], "what it happens to", &mut reader.problems)?;
        let words = [("wiped", false), ("restored", true)];
        if what.word(&words, &mut reader.problems)? {
            let back = map.need(&["back"], "how old the backup is", &mut reader.problems)?;
            return span().read(&back, reader).map(Some);
        }
        if let Some(at) = map.get(&["back"]) {
            let message = "is for etcd: restored; what is wiped is gone";
            reader.problems.wrong(&at, message);
        }
        Some(None)
    }

    fn write(back: &Option<Span>, out: &mut Yaml) {
        let word = if back.is_some() { "restored" } else { "wiped" };
        out.put("etcd", Yaml::plain(word));
        if let Some(back) = back {
            out.put("back", Yaml::span(*back));
        }
    }

    fn rows() -> Vec<FieldRow> {
        vec![
            FieldRow {
                is: "`wiped` or `restored`".to_owned(),
                ..FieldRow::new(&["etcd"], &span(), "", "")
            },
            FieldRow::new(&["back"], &span(), "with `restored`", ""),
        ]
    }
}

impl Event {
    /// The clients to whom it happens, if it happens to clients.
    pub fn clients(&self) -> Option<&ClientChoice> {
        match self {
            Self::Crash { clients, .. }
            | Self::Leave { clients, .. }
            | Self::Close { clients, .. }
            | Self::Surge { clients, .. }
            | Self::Demand { clients, .. }
            | Self::Drift {
                clock: ClockChoice::Clients(clients),
                ..
            }
            | Self::Jump {
                clock: ClockChoice::Clients(clients),
                ..
            }
            | Self::Twin {
                of: ClockChoice::Clients(clients),
                ..
            } => Some(clients),
            _ => None,
        }
    }
}

words! {
    /// From whom a node is cut off.
    pub enum Side {
        /// From all.
        All = "all",
        /// From its parent.
        Parent = "parent",
        /// From its clients and child servers.
        Below = "below",
    }
}

words! {
    /// Which servers of a node.
    pub enum NodeServers {
        /// The master.
        Master = "master",
        /// All but the master.
        Others = "others",
        /// Each of them, or not, by chance.
        Some = "some",
        /// All.
        All = "all",
    }
}

impl NodeServers {
    /// For people.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Master => "the master",
            Self::Others => "the other candidates",
            Self::Some => "some servers",
            Self::All => "all servers",
        }
    }
}

words! {
    /// What does not get through between a server and etcd.
    pub enum ToEtcd {
        /// Nothing.
        Both = "both",
        /// What the server asks.
        There = "there",
        /// What etcd answers: what was asked for is done.
        Back = "back",
    }
}

impl ToEtcd {
    /// For people.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Both => "",
            Self::There => ": their questions are lost",
            Self::Back => ": its answers are lost",
        }
    }
}
