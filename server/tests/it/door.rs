//! The door: what the server allows a connection, and how it treats one that does too much or too little.

use bytes::Bytes;
use doorward_door::guarded::PREFACE;
use doorward_door::overload::PUSHBACK;
use doorward_proto::doorman::GetCapacityRequest;
use doorward_server::app::Server;
use doorward_server::limits::ServerLimit;
use h2::SendStream;
use h2::client::{ResponseFuture, SendRequest};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::codegen::http::Request;
use tonic::{Code, Status};

use crate::running::{asked, capacity, config, eventually, gets, request, started};

/// Starts a server with little patience.
async fn hasty() -> Server {
    with([(ServerLimit::Patience, 300)]).await
}

/// Starts a server with endless patience.
async fn patient() -> Server {
    with([(ServerLimit::Patience, 600_000)]).await
}

/// Starts a patient server that keeps few unread bytes.
async fn patient_with_little_room() -> Server {
    with([
        (ServerLimit::Patience, 600_000),
        (ServerLimit::OutgoingBytesPerAddress, 1_000),
    ])
    .await
}

async fn with<const N: usize>(bounds: [(ServerLimit, u64); N]) -> Server {
    let mut config = config();
    config.bounds.extend(bounds);
    started(config).await
}

fn refused(server: &Server, limit: ServerLimit) -> u64 {
    let figures = server.state().limits().figures();
    let of_limit = figures.iter().find(|it| it.name == limit.texts().name);
    of_limit.expect("every limit has a figure").refused_count
}

/// Checks that the server serves an honest client, whatever other clients do.
async fn serves(server: &Server) {
    let mut client = capacity(server).await;
    let honest = gets(&mut client, "honest", asked("fair/honest", 10.0)).await;
    assert_eq!(honest, 10.0);
}

fn headers(server: &Server, method: &str) -> Request<()> {
    let address = server.grpc_address();
    Request::builder()
        .method("POST")
        .uri(format!("http://{address}/{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .unwrap()
}

const GET_CAPACITY: &str = "doorman.Capacity/GetCapacity";

/// Begins a call. The caller sends the message afterwards.
fn begin(send: &mut SendRequest<Bytes>, server: &Server) -> (ResponseFuture, SendStream<Bytes>) {
    let headers = headers(server, GET_CAPACITY);
    send.send_request(headers, false).unwrap()
}

/// Returns the message of an honest call.
fn honest_call() -> Bytes {
    framed(&request("a", vec![asked("fair/x", 10.0)]))
}

/// Returns the bytes of a call's message, as gRPC frames it.
fn framed(message: &GetCapacityRequest) -> Bytes {
    let message = message.encode_to_vec();
    let length = u32::try_from(message.len()).unwrap();
    [&[0][..], &length.to_be_bytes(), &message].concat().into()
}

async fn connect(server: &Server) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(server.grpc_address()).await.unwrap();
    let (send, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    send.ready().await.unwrap()
}

/// Opens a connection with a window of zero, so that the server cannot send the body of any answer.
async fn without_window(
    server: &Server,
) -> (
    SendRequest<Bytes>,
    tokio::task::JoinHandle<Result<(), h2::Error>>,
) {
    let stream = TcpStream::connect(server.grpc_address()).await.unwrap();
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(0);
    let (send, connection) = builder.handshake::<_, Bytes>(stream).await.unwrap();
    (send, tokio::spawn(connection))
}

/// Returns the answer to a call whose message is these bytes, without an end.
async fn answered(server: &Server, bytes: &[u8]) -> Status {
    let mut send = connect(server).await;
    let (answer, mut body) = begin(&mut send, server);
    let bytes = Bytes::copy_from_slice(bytes);
    body.send_data(bytes, false).unwrap();
    let answer = answer.await.unwrap();
    Status::from_header_map(answer.headers()).expect("refused at once")
}

/// Waits until the server closes a connection.
async fn closed(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    // The system closes or resets the connection.
    let _ = stream.read_to_end(&mut rest).await;
}

#[tokio::test]
async fn a_message_that_does_not_arrive_in_full_is_given_up() {
    let server = hasty().await;
    let announces_4_mib = [0, 0, 64, 0, 0];
    let half = [&[0, 0, 0, 0, 100][..], &[7; 50]].concat();
    let too_large = answered(&server, &announces_4_mib).await;
    assert_eq!(too_large.code(), Code::OutOfRange, "{too_large}");
    assert!(too_large.message().contains("--message-bytes-max"));
    assert_eq!(refused(&server, ServerLimit::MessageBytes), 1);
    for part in [&half[..], &half[..3], &[]] {
        let late = answered(&server, part).await;
        assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
        let pushback = late.metadata().get("grpc-retry-pushback-ms");
        let pushback: u64 = pushback.unwrap().to_str().unwrap().parse().unwrap();
        assert!((1_000..5_000).contains(&pushback), "{pushback}");
    }
    assert_eq!(refused(&server, ServerLimit::Patience), 3);
    serves(&server).await;
}

/// Returns the code of the answer to a call with this `grpc-encoding` header.
async fn code_of_compressed(server: &Server, encoding: &str, bytes: Vec<u8>) -> Code {
    let mut send = connect(server).await;
    let mut headers = headers(server, GET_CAPACITY);
    let encoding = encoding.parse().unwrap();
    headers.headers_mut().insert("grpc-encoding", encoding);
    let (answer, mut body) = send.send_request(headers, false).unwrap();
    body.send_data(bytes.into(), true).unwrap();
    let (head, mut body) = answer.await.unwrap().into_parts();
    if let Some(status) = Status::from_header_map(&head.headers) {
        return status.code();
    }
    while let Some(data) = body.data().await {
        data.unwrap();
    }
    let trailers = body.trailers().await.unwrap().unwrap();
    Status::from_header_map(&trailers).unwrap().code()
}

#[tokio::test]
async fn a_compressed_message_is_answered_with_unimplemented() {
    let server = with([]).await;
    let message = request("a", vec![asked("fair/x", 10.0)]).encode_to_vec();
    let framed_as = |flag: u8| {
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        [&[flag], &length[..], &message].concat()
    };
    for (encoding, flag, code) in [
        ("identity", 0, Code::Ok),
        ("gzip", 1, Code::Unimplemented),
        ("gzip", 0, Code::Unimplemented),
        ("zstd", 1, Code::Unimplemented),
    ] {
        let seen = code_of_compressed(&server, encoding, framed_as(flag)).await;
        assert_eq!(seen, code, "{encoding} {flag}");
    }
    serves(&server).await;
}

#[tokio::test]
async fn a_message_in_crumbs_is_served() {
    let server = with([]).await;
    let mut send = connect(&server).await;
    let (answer, mut body) = begin(&mut send, &server);
    for byte in &honest_call() {
        let crumb = Bytes::copy_from_slice(&[*byte]);
        body.send_data(crumb, false).unwrap();
        tokio::task::yield_now().await;
    }
    body.send_data(Bytes::new(), true).unwrap();
    let answer = answer.await.unwrap();
    assert_eq!(answer.status(), 200);
    let status = Status::from_header_map(answer.headers());
    assert!(status.is_none_or(|status| status.code() == Code::Ok));
}

#[tokio::test]
async fn who_is_silent_or_stops_half_way_is_closed() {
    let server = hasty().await;
    let settings: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    // HEADERS without an end. A CONTINUATION frame would bring it.
    let open_headers: &[u8] = &[0, 0, 1, 1, 0, 0, 0, 0, 1, 0x83];
    for (says, bytes) in [
        ("nothing", Vec::new()),
        ("a byte", b"P".to_vec()),
        ("half a preface", PREFACE[..20].to_vec()),
        ("something else", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        ("half a frame", [PREFACE, settings, &settings[..5]].concat()),
        ("half headers", [PREFACE, settings, open_headers].concat()),
    ] {
        let mut stream = TcpStream::connect(server.grpc_address()).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
        let closed = tokio::time::timeout(crate::running::PATIENCE, closed(&mut stream)).await;
        assert!(closed.is_ok(), "{says}");
    }
    assert!(refused(&server, ServerLimit::Patience) >= 5);
    let pages = server.http_address().expect("pages");
    let mut page = TcpStream::connect(pages).await.unwrap();
    page.write_all(b"GET / HTTP/1.1\r\nX: ").await.unwrap();
    closed(&mut page).await;
    serves(&server).await;
}

#[tokio::test]
async fn at_the_limit_the_oldest_silent_connection_makes_room() {
    let server = with([
        (ServerLimit::Connections, 2),
        (ServerLimit::ConnectionsPerAddress, 2),
    ])
    .await;
    let mut silent = TcpStream::connect(server.grpc_address()).await.unwrap();
    let _later = TcpStream::connect(server.grpc_address()).await.unwrap();
    serves(&server).await;
    closed(&mut silent).await;
    assert_eq!(refused(&server, ServerLimit::ConnectionsPerAddress), 1);
}

#[tokio::test]
async fn a_flood_of_frames_that_carry_no_call_is_closed() {
    let server = patient().await;
    let ping: &[u8] = &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let settings: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    for frame in [ping, settings] {
        let before = refused(&server, ServerLimit::ControlFrames);
        let mut stream = TcpStream::connect(server.grpc_address()).await.unwrap();
        let hello = [PREFACE, settings].concat();
        stream.write_all(&hello).await.unwrap();
        let (mut reads, mut writes) = stream.split();
        let flood = async {
            // Writes until the server closes the connection.
            while writes.write_all(&frame.repeat(100)).await.is_ok() {}
        };
        let mut sink = tokio::io::sink();
        let (_, _) = tokio::join!(flood, tokio::io::copy(&mut reads, &mut sink));
        assert_eq!(refused(&server, ServerLimit::ControlFrames), before + 1);
    }
    serves(&server).await;
}

#[tokio::test]
async fn an_address_that_calls_too_often_is_told_when_to_come_back() {
    let server = with([(ServerLimit::CallsPerAddress, 1)]).await;
    let mut client = capacity(&server).await;
    let mut refusal = None;
    eventually("a call is refused", async || {
        let asks = request("a", vec![asked("fair/x", 10.0)]);
        refusal = client.get_capacity(asks).await.err();
        refusal.is_some()
    })
    .await;
    let refusal = refusal.unwrap();
    assert_eq!(refusal.code(), Code::ResourceExhausted, "{refusal}");
    assert!(refusal.metadata().get(PUSHBACK).is_some());
    assert!(refused(&server, ServerLimit::CallsPerAddress) > 0);
}

#[tokio::test]
async fn answers_that_are_not_read_end_the_connection() {
    let server = hasty().await;
    let (send, connection) = without_window(&server).await;
    let mut send = send.ready().await.unwrap();
    let (answer, mut body) = begin(&mut send, &server);
    body.send_data(honest_call(), true).unwrap();
    let _unread = answer.await.unwrap();
    let _closed_or_reset = connection.await.unwrap();
    assert_eq!(refused(&server, ServerLimit::Patience), 1);
    serves(&server).await;
}

/// Makes a call whose message arrives in full but does not end, and returns the HTTP status of the answer.
async fn half_ended(server: &Server, method: &str, message: Bytes) -> u16 {
    let mut send = connect(server).await;
    let (answer, mut body) = send.send_request(headers(server, method), false).unwrap();
    body.send_data(message, false).unwrap();
    let answer = answer.await.unwrap();
    let status = answer.status().as_u16();
    let mut answer = answer.into_body();
    // Reads the whole answer. For the server, the call is over then.
    while let Some(part) = answer.data().await {
        let read = part.unwrap().len();
        answer.flow_control().release_capacity(read).unwrap();
    }
    status
}

#[tokio::test]
async fn a_call_that_does_not_end_is_answered_and_holds_nobody_up() {
    let server = patient().await;
    let empty = Bytes::from_static(&[0; 5]);
    let status = half_ended(&server, "doorward.admin.v1.Admin/GetStatus", empty).await;
    assert_eq!(status, 200);
    let status = half_ended(&server, GET_CAPACITY, honest_call()).await;
    assert_eq!(status, 200);
    let (code, _, _) = crate::running::page(&server, "/metrics").await;
    assert_eq!(code, 200);
    serves(&server).await;
}

#[tokio::test]
async fn an_answer_that_nobody_wants_any_more_is_not_counted_as_unread() {
    let server = patient_with_little_room().await;
    let (mut send, _connection) = without_window(&server).await;
    for _ in 0..200 {
        send = send.ready().await.unwrap();
        let (answer, mut body) = begin(&mut send, &server);
        body.send_data(honest_call(), true).unwrap();
        let answer = answer.await.unwrap();
        drop(answer);
        body.send_reset(h2::Reason::CANCEL);
    }
    serves(&server).await;
    assert_eq!(refused(&server, ServerLimit::OutgoingBytesPerAddress), 0);
}

/// Returns an HTTP/2 frame.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// Returns calls that are given up at once. A server that stood still while its callers timed out reads such calls.
fn calls_given_up(count: u8) -> Vec<u8> {
    let path = format!("/{GET_CAPACITY}");
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "x"),
        (":path", &path),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let texts = |(name, value): (&str, &str)| {
        let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        [vec![0], text(name), text(value)].concat()
    };
    let block = fields.map(texts).concat();
    let call = |number| {
        let stream = 2 * number + 1;
        [
            frame(1, 4, stream, &block),
            frame(0, 1, stream, &honest_call()),
            frame(3, 0, stream, &[0, 0, 0, 8]),
        ]
        .concat()
    };
    (0..count).flat_map(call).collect()
}

#[tokio::test]
async fn callers_of_a_proxy_that_time_out_together_keep_their_connection() {
    const PING_ANSWER: [u8; 9] = [0, 0, 8, 6, 1, 0, 0, 0, 0];
    for (streams_max, is_kept) in [(64, true), (1, false)] {
        let server = with([(ServerLimit::StreamsPerConnection, streams_max)]).await;
        let mut stream = TcpStream::connect(server.grpc_address()).await.unwrap();
        // 30 clients call three times each.
        let sent = [PREFACE, &frame(4, 0, 0, &[]), &calls_given_up(90)].concat();
        stream.write_all(&sent).await.unwrap();
        let _closed = stream.write_all(&frame(6, 0, 0, &[7; 8])).await;
        let mut heard = Vec::new();
        while !heard.windows(9).any(|it| it == PING_ANSWER)
            && stream.read_buf(&mut heard).await.is_ok_and(|more| more > 0)
        {}
        let answered = heard.windows(9).any(|it| it == PING_ANSWER);
        assert_eq!(answered, is_kept, "{streams_max}");
        let refusals = refused(&server, ServerLimit::ControlFrames);
        assert_eq!(refusals, u64::from(!is_kept), "{streams_max}");
    }
}

#[tokio::test]
async fn who_has_the_most_unread_makes_room() {
    let server = patient_with_little_room().await;
    let (mut send, connection) = without_window(&server).await;
    let mut unread = Vec::new();
    let mut call = async || {
        send = send.clone().ready().await?;
        let (answer, mut body) = send.send_request(headers(&server, GET_CAPACITY), false)?;
        body.send_data(honest_call(), true)?;
        answer.await
    };
    while unread.len() < 60
        && let Ok(answer) = call().await
    {
        unread.push(answer);
    }
    let _cut = connection.await.unwrap();
    assert!(refused(&server, ServerLimit::OutgoingBytesPerAddress) > 0);
    serves(&server).await;
}
