//! A path between two processes that can be broken: a TCP proxy with a handle.
//!
//! Bytes from the side that connected are *requests*, bytes back to it are *answers*. Each [`Direction`] can pass, be
//! held (bytes arrive late, as after packet loss and retransmission), or be dropped (bytes disappear without notice).
//! Dropped bytes are missing in the stream. So a connection that existed while a direction was dropped is dead in that
//! direction for ever; after [`Proxy::pass`] only new connections work.
//!
//! The proxy has a thread of its own, so it works while a test waits for something. A method returns after its change
//! is in force.

use std::collections::VecDeque;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc as commands, watch};
use tokio::time::Instant;

/// Treatment of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// They arrive.
    #[default]
    Pass,
    /// They arrive when they may pass again.
    Hold,
    /// They never arrive, without notice.
    Drop,
}

/// Direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the side that connected.
    Requests,
    /// To the side that connected.
    Answers,
}

/// State of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Way {
    flow: Flow,
    /// Number of times that it was dropped.
    drops: u64,
    /// Delay of bytes.
    delay: Duration,
}

/// State of the proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    requests: Way,
    answers: Way,
    refuses: bool,
    /// Number of times that all connections were closed.
    closed: u64,
}

impl State {
    fn way(&mut self, direction: Direction) -> &mut Way {
        match direction {
            Direction::Requests => &mut self.requests,
            Direction::Answers => &mut self.answers,
        }
    }

    fn set(&mut self, direction: Direction, flow: Flow) {
        let way = self.way(direction);
        way.flow = flow;
        way.drops += u64::from(flow == Flow::Drop);
    }
}

/// The present faults, and a signal for changes.
type Command = (State, mpsc::Sender<()>);

/// A proxy. It ends with its connections when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: State,
    commands: commands::UnboundedSender<Command>,
    accepted: watch::Receiver<u64>,
}

impl Proxy {
    /// Starts to forward to an address, from a port of its own.
    pub fn to(target: &str) -> Self {
        let target: SocketAddr = target.parse().unwrap();
        let (send, received) = mpsc::channel();
        let (commands, to_do) = commands::unbounded_channel();
        let (accepted_sender, accepted) = watch::channel(0);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                send.send(listener.local_addr().unwrap()).unwrap();
                serve(listener, target, to_do, accepted_sender).await;
            });
        });
        Self {
            address: received.recv().unwrap(),
            state: State::default(),
            commands,
            accepted,
        }
    }

    /// Returns its own address.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Returns the number of accepted connections.
    pub fn accepted(&self) -> u64 {
        *self.accepted.borrow()
    }

    /// Passes everything at once.
    pub fn pass(&mut self) {
        self.change(|state| {
            state.set(Direction::Requests, Flow::Pass);
            state.set(Direction::Answers, Flow::Pass);
            state.requests.delay = Duration::ZERO;
            state.answers.delay = Duration::ZERO;
            state.refuses = false;
        });
    }

    /// Becomes a black hole: accepts connections, swallows everything, closes nothing.
    pub fn drop_all(&mut self) {
        self.change(|state| {
            state.set(Direction::Requests, Flow::Drop);
            state.set(Direction::Answers, Flow::Drop);
        });
    }

    /// Holds everything until it may pass again.
    pub fn hold_all(&mut self) {
        self.change(|state| {
            state.set(Direction::Requests, Flow::Hold);
            state.set(Direction::Answers, Flow::Hold);
        });
    }

    /// Changes the treatment of one direction; the other one stays unchanged.
    pub fn set(&mut self, direction: Direction, flow: Flow) {
        self.change(|state| state.set(direction, flow));
    }

    /// Sets the delay of one direction.
    pub fn delay(&mut self, direction: Direction, delay: Duration) {
        self.change(|state| state.way(direction).delay = delay);
    }

    /// Closes all connections, and refuses new ones.
    pub fn refuse(&mut self) {
        self.change(|state| {
            state.refuses = true;
            state.closed += 1;
        });
    }

    /// Closes all connections. New ones are accepted, unless they are refused.
    pub fn sever(&mut self) {
        self.change(|state| state.closed += 1);
    }

    fn change(&mut self, change: impl FnOnce(&mut State)) {
        change(&mut self.state);
        let (done, is_done) = mpsc::channel();
        self.commands.send((self.state, done)).unwrap();
        is_done.recv().unwrap();
    }
}

async fn serve(
    listener: TcpListener,
    target: SocketAddr,
    mut to_do: commands::UnboundedReceiver<Command>,
    accepted: watch::Sender<u64>,
) {
    let address = listener.local_addr().unwrap();
    let mut listener = Some(listener);
    let (state, _) = watch::channel(State::default());
    loop {
        let accept = async {
            match &listener {
                Some(listener) => listener.accept().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            command = to_do.recv() => {
                let Some((new, done)) = command else { break };
                if new.refuses {
                    listener = None;
                } else if listener.is_none() {
                    listener = Some(TcpListener::bind(address).await.unwrap());
                }
                // All connections live on this thread: none moves a byte before it sees this.
                state.send_replace(new);
                let _ = done.send(());
            }
            connection = accept => {
                let Ok((stream, _)) = connection else { continue };
                accepted.send_modify(|accepted| *accepted += 1);
                tokio::spawn(pass_on(stream, target, *state.borrow(), state.subscribe()));
            }
        }
    }
}

/// Serves a connection that was accepted in this state of the proxy.
async fn pass_on(near: TcpStream, target: SocketAddr, known: State, state: watch::Receiver<State>) {
    let closing = closed(state.clone(), known.closed);
    let passing = async {
        // If the target is down, the connection is refused, unless answers are swallowed.
        let Ok(far) = TcpStream::connect(target).await else {
            if known.answers.flow != Flow::Pass {
                pending::<()>().await;
            }
            return;
        };
        let _ = (near.set_nodelay(true), far.set_nodelay(true));
        let (near_read, near_write) = near.into_split();
        let (far_read, far_write) = far.into_split();
        let requests = Pipe::new(Direction::Requests, known, state.clone());
        let answers = Pipe::new(Direction::Answers, known, state);
        // A direction that ends well leaves the other one open; one that fails ends both.
        let _ = tokio::try_join!(
            requests.run(near_read, far_write),
            answers.run(far_read, near_write)
        );
    };
    tokio::select! {
        biased;
        () = closing => {}
        () = passing => {}
    }
}

/// Returns when connections were closed more often than `known`.
async fn closed(mut state: watch::Receiver<State>, known: u64) {
    // The proxy's end closes them too.
    let _ = state.wait_for(|state| state.closed > known).await;
}

/// One direction of one connection.
struct Pipe {
    direction: Direction,
    state: watch::Receiver<State>,
    /// Number of drops of the direction when the connection was made.
    drops: u64,
    is_dead: bool,
    /// Data in flight, with the time from which it may arrive. Empty: the end.
    queue: VecDeque<(Instant, Vec<u8>)>,
    /// Number of bytes in flight.
    queued: usize,
    is_read: bool,
}

/// Largest number of bytes that are read ahead of their arrival.
const QUEUED_MAX: usize = 4 << 20;

impl Pipe {
    fn new(direction: Direction, mut known: State, state: watch::Receiver<State>) -> Self {
        let way = known.way(direction);
        Self {
            direction,
            state,
            drops: way.drops,
            is_dead: way.flow == Flow::Drop,
            queue: VecDeque::new(),
            queued: 0,
            is_read: false,
        }
    }

    fn way(&mut self) -> Way {
        let mut state = *self.state.borrow_and_update();
        *state.way(self.direction)
    }

    async fn run(mut self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> Result<(), ()> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let way = self.way();
            if way.flow == Flow::Drop || way.drops > self.drops {
                self.is_dead = true;
                self.queue.clear();
                self.queued = 0;
            }
            let is_next = self.queue.front().map(|(at, _)| *at);
            let may_write = is_next.filter(|_| way.flow == Flow::Pass);
            tokio::select! {
                biased;
                changed = self.state.changed() => changed.map_err(|_| ())?,
                () = until(may_write) => {
                    let Some((_, bytes)) = self.queue.pop_front() else { continue };
                    self.queued -= bytes.len();
                    if bytes.is_empty() {
                        return to.shutdown().await.map_err(|_| ());
                    }
                    to.write_all(&bytes).await.map_err(|_| ())?;
                }
                read = from.read(&mut buffer), if !self.is_read && self.queued < QUEUED_MAX => {
                    let read = match read {
                        Ok(read) => read,
                        // The other side must not notice.
                        Err(_) if self.is_dead || way.flow != Flow::Pass => 0,
                        Err(_) => return Err(()),
                    };
                    self.is_read = read == 0;
                    if !self.is_dead {
                        let bytes = buffer.get(..read).unwrap_or_default().to_vec();
                        self.queued += read;
                        self.queue.push_back((Instant::now() + way.delay, bytes));
                    }
                }
            }
        }
    }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => pending().await,
    }
}
