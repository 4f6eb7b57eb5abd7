//! Accepted sockets, sockets beyond the limit, and the end of accepting.

use std::net::TcpStream as StdTcpStream;

use tokio::net::TcpListener;

use super::*;
use crate::door_limits::testing::limits;
use crate::paths::Paths;

/// Longest wait for an event that a test expects.
const PATIENCE: Duration = Duration::from_secs(30);

fn door(connections: u64) -> Arc<Door> {
    let limits = limits(connections, connections);
    Door::new(limits, Paths::default(), Arc::new(Semaphore::new(1)))
}

/// Returns a listener with the smallest backlog.
async fn narrow() -> (TcpListener, SocketAddr) {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn connect(address: SocketAddr) -> io::Result<StdTcpStream> {
    StdTcpStream::connect_timeout(&address, PATIENCE)
}

#[test]
fn connections_are_accepted_while_all_tasks_are_busy() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_io().build().unwrap();
    let (listener, address) = runtime.block_on(narrow());
    let mut arrivals = start(listener.into(), door(1_000), CancellationToken::new()).unwrap();
    // From here on, no task of the runtime runs. Each client waits for the one before it: the system drops a connection
    // beyond the backlog, and the client retries only a second or more later.
    for _ in 0..100 {
        let client = connect(address).unwrap();
        let arrival = arrivals.blocking_recv().unwrap();
        assert_eq!(arrival.peer, Some(client.local_addr().unwrap()));
    }
}

#[tokio::test]
async fn no_more_sockets_are_open_than_there_is_room_for() {
    let (listener, address) = narrow().await;
    let mut arrivals = start(listener.into(), door(3), CancellationToken::new()).unwrap();
    let mut connected = Vec::new();
    let mut open = Vec::new();
    for _ in 0..3 + NEWCOMERS {
        connected.push(connect(address).unwrap());
        open.push(arrivals.recv().await.unwrap());
    }
    // This connection stays in the system's queue.
    connected.push(connect(address).unwrap());
    let soon = Duration::from_millis(50);
    assert!(tokio::time::timeout(soon, arrivals.recv()).await.is_err());
    drop(open.pop());
    let arrival = tokio::time::timeout(PATIENCE, arrivals.recv()).await;
    assert!(arrival.unwrap().is_some());
}

#[tokio::test]
async fn when_the_arrivals_end_the_address_is_free() {
    let (listener, address) = narrow().await;
    let stop = CancellationToken::new();
    let mut arrivals = start(listener.into(), door(10), stop.clone()).unwrap();
    let _client = connect(address).unwrap();
    assert!(arrivals.recv().await.is_some());
    stop.cancel();
    assert!(arrivals.recv().await.is_none());
    assert!(connect(address).is_err());
}
