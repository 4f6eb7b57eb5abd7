//! Clients of Redis at the door.

use std::net::SocketAddr;
use std::sync::Arc;

use doorward::rules::Rules;
use doorward_door::Door;
use doorward_door::door_limits::DoorLimits;
use doorward_edge::clock::Wall;
use doorward_edge::edge::Edge;
use doorward_edge::records::Records;
use doorward_edge::resp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::granting_node::GrantingNode;

const RULES: &str = "
domain: redis
descriptors:
  - key: key
    value: user:*
    rate_limit: {rate: 2/1000days}
  - key: key
    value: shared
    rate_limit: {rate: 1000/s, algorithm: token_bucket}
    scope: shared
    max_wait: 1min
    on_failure: closed
";

struct Server {
    address: SocketAddr,
    node: Arc<GrantingNode>,
    limits: DoorLimits,
    serving: JoinHandle<()>,
    stop: DropGuard,
}

impl Server {
    async fn start() -> Self {
        let limits = DoorLimits::default();
        limits.patience.set_max(60_000);
        let looking = Arc::new(Semaphore::new(1));
        let door = Door::new(limits.clone(), Default::default(), looking);
        let rules = Rules::load(&[("redis.yaml", RULES)]).unwrap();
        let node = Arc::new(GrantingNode::new(0.01));
        let records = Records::default();
        let edge = Edge::within(256 << 20, node.clone(), rules, Wall::Machine, records);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(resp::serve(listener, edge, door, stop.clone()));
        Self {
            address,
            node,
            limits,
            serving,
            stop: stop.drop_guard(),
        }
    }

    async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.address).await.unwrap())
    }
}

struct Client(TcpStream);

impl Client {
    async fn send(&mut self, bytes: &str) {
        self.0.write_all(bytes.as_bytes()).await.unwrap();
    }

    #[track_caller]
    fn expect(&mut self, answers: &str) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            let mut read = vec![0; answers.len()];
            self.0.read_exact(&mut read).await.unwrap();
            assert_eq!(String::from_utf8(read).unwrap(), answers, "{caller}");
        }
    }

    async fn throttle(&mut self, words: &str) -> [i64; 5] {
        self.send(&command(words)).await;
        self.expect("*5\r\n").await;
        let mut answer = [0; 5];
        for number in &mut answer {
            let mut line = String::new();
            while !line.ends_with("\r\n") {
                line.push(char::from(self.0.read_u8().await.unwrap()));
            }
            *number = line.trim_end().trim_start_matches(':').parse().unwrap();
        }
        answer
    }

    /// Returns the rest of the answers, until the connection ends.
    async fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        // A connection may also end by a reset.
        let _ = self.0.read_to_end(&mut rest).await;
        String::from_utf8(rest).unwrap()
    }
}

/// Returns a command as clients send it.
fn command(words: &str) -> String {
    let words: Vec<_> = words.split(' ').collect();
    let mut command = format!("*{}\r\n", words.len());
    for word in words {
        command += &format!("${}\r\n{word}\r\n", word.len());
    }
    command
}

#[tokio::test]
async fn commands_are_answered_in_their_order_in_whatever_pieces_they_arrive() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let commands = [
        "CL.THROTTLE a 1 1 100000",
        "PING",
        "THROTTLE a 1 1 100000 9",
        "ECHO b",
    ];
    let bytes = commands.map(command).concat();
    client.send(&bytes).await;
    client
        .expect("*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:100000\r\n+PONG\r\n")
        .await;
    client
        .expect("*5\r\n:1\r\n:2\r\n:1\r\n:-1\r\n:100000\r\n$1\r\nb\r\n")
        .await;
    for byte in command("ECHO c").chars() {
        client.send(&byte.to_string()).await;
    }
    client.expect("$1\r\nc\r\n").await;
    client.send("ECHO d\r\nQUIT\r\nECHO e\r\n").await;
    assert_eq!(client.rest().await, "$1\r\nd\r\n+OK\r\n");
}

#[tokio::test]
async fn a_rule_of_the_key_decides_instead_of_the_numbers() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for (limited, remaining) in [(0, 1), (0, 0), (1, 0)] {
        let answer = client.throttle("THROTTLE user:7 100 100 1").await;
        assert_eq!(answer[..3], [limited, 2, remaining]);
        let is_wait = (1..=86_400_000).contains(&answer[3]);
        assert_eq!(is_wait, limited == 1, "{answer:?}");
        assert!((1..=86_400_000).contains(&answer[4]), "{answer:?}");
    }
    let answer = client.throttle("THROTTLE user:8 100 100 1 2").await;
    assert_eq!(answer[..3], [0, 2, 0], "each key has its own limit");
}

#[tokio::test]
async fn a_negative_quantity_gives_back_what_the_same_client_took() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let mut thief = server.connect().await;
    thief.send(&command("CLIENT SETNAME thief")).await;
    thief.expect("+OK\r\n").await;
    for (key, limit) in [("user:9", 2), ("own", 2)] {
        let with = |quantity: i64| format!("THROTTLE {key} 1 1 1000 {quantity}");
        assert_eq!(client.throttle(&with(2)).await[..3], [0, limit, 0]);
        // The key has nothing left, so a look passes and a request does not.
        assert_eq!(thief.throttle(&with(-2)).await[..3], [0, limit, 0], "{key}");
        assert_eq!(thief.throttle(&with(1)).await[..3], [1, limit, 0], "{key}");
        assert_eq!(client.throttle(&with(-1)).await[..3], [0, limit, 1]);
        let all = client.throttle(&with(i64::MIN)).await;
        assert_eq!(all[..4], [0, limit, 2, -1], "{key}");
    }
}

#[tokio::test]
async fn a_shared_rule_takes_of_the_lease_of_the_address_whatever_the_name() {
    let server = Server::start().await;
    for (name, is_first) in [("web-1", true), ("web-2", false)] {
        let mut client = server.connect().await;
        client
            .send(&command(&format!("CLIENT SETNAME {name}")))
            .await;
        client.expect("+OK\r\n").await;
        if is_first {
            let answer = client.throttle("THROTTLE shared 1 1 1").await;
            assert_eq!(answer[..2], [0, 1_000], "{name}");
        }
        let answer = client.throttle("THROTTLE shared 1 1 1").await;
        let next = answer[3];
        assert_eq!(answer[..3], [1, 1_000, 0], "a lease of 0.01 a second");
        assert!((60..=100).contains(&next), "{answer:?}");
    }
    let asked = server.node.asked.lock().unwrap();
    let asked: Vec<_> = asked
        .iter()
        .map(|(holder, id)| (&**holder, &**id))
        .collect();
    let resource = "shared/redis/key=shared";
    assert_eq!(asked, [("caller:127.0.0.1", resource)]);
}

#[tokio::test]
async fn bytes_that_are_no_command_end_the_connection_with_an_error() {
    let server = Server::start().await;
    for (bytes, error) in [
        ("*1\r\n*1\r\n".to_owned(), "expected '$'"),
        ("*1\r\n$99999999\r\n".to_owned(), "invalid bulk length"),
        ("*99999999\r\n".to_owned(), "invalid multibulk length"),
        ("a".repeat(resp::COMMAND_BYTES_MAX + 1), "too big command"),
    ] {
        let mut client = server.connect().await;
        client.send(&bytes).await;
        let error = format!("-ERR Protocol error: {error}\r\n");
        assert_eq!(client.rest().await, error);
    }
}

#[tokio::test]
async fn the_limits_of_the_door_hold() {
    let server = Server::start().await;
    server.limits.connections_per_caller.set_max(1);
    let mut evicted = server.connect().await;
    evicted.send("PING\r\n").await;
    evicted.expect("+PONG\r\n").await;
    let mut client = server.connect().await;
    client.send("PING\r\n").await;
    client.expect("+PONG\r\n").await;
    assert_eq!(evicted.rest().await, "", "it makes room");
    server.limits.incoming_bytes_per_caller.set_max(10);
    client.send("PING\r\n*1\r\n$4\r\nPIN").await;
    let full = "+PONG\r\n-ERR too many bytes in incomplete commands\r\n";
    assert_eq!(client.rest().await, full);
    assert_eq!(server.limits.connections_per_caller.refused(), 1);
    assert_eq!(server.limits.incoming_bytes_per_caller.refused(), 1);
    server.limits.patience.set_max(200);
    let mut client = server.connect().await;
    client.send("*1\r\n").await;
    assert_eq!(client.rest().await, "", "the command stays incomplete");
    assert_eq!(server.limits.patience.refused(), 1);
}

#[tokio::test]
async fn an_address_has_a_rate_of_commands() {
    let server = Server::start().await;
    // It holds for addresses that come from now on.
    server.limits.calls_per_caller.set_max(2);
    let mut client = server.connect().await;
    client.send(&"PING\r\n".repeat(100)).await;
    client
        .expect("+PONG\r\n+PONG\r\n-ERR too many commands of this address; try again\r\n")
        .await;
}

#[tokio::test]
async fn idle_connections_end_when_the_server_stops() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.send("PING\r\n").await;
    client.expect("+PONG\r\n").await;
    drop(server.stop);
    assert_eq!(client.rest().await, "");
    server.serving.await.unwrap();
}
