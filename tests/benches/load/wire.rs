//! One HTTP/2 connection and calls on it, without a client library: the measuring program must cost less than the
//! measured one.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::{Builder, SendRequest};
use h2::{RecvStream, SendStream};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpSocket;
use tonic::codegen::http::header::{CONTENT_TYPE, TE};
use tonic::codegen::http::{HeaderMap, HeaderValue, Method, Request, Uri, Version};

use crate::mtls;

/// Paths of the calls.
pub(crate) const GET_CAPACITY: &str = "/doorman.Capacity/GetCapacity";
pub(crate) const RELEASE_CAPACITY: &str = "/doorman.Capacity/ReleaseCapacity";
pub(crate) const GET_STATUS: &str = "/doorward.admin.v1.Admin/GetStatus";
pub(crate) const PLAN: &str = "/doorward.admin.v1.Plans/Plan";
pub(crate) const STREAM_CAPACITY: &str = "/doorward.v1.CapacityStream/StreamCapacity";
pub(crate) const STREAM_SERVER_CAPACITY: &str = "/doorward.v1.CapacityStream/StreamServerCapacity";

/// Window for answers of any size at once.
const WINDOW: u32 = 1 << 24;

/// Length of the head of a gRPC message: whether it is compressed, and its length.
const HEAD: usize = 5;

/// A failed call, in words.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The server refused.
    Refused(String),
    /// A problem of the connection.
    Broken(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Broken(why) => write!(f, "broken: {why}"),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<h2::Error> for Failure {
    fn from(error: h2::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

/// A connection. Its clones are the same connection.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    requests: SendRequest<Bytes>,
    authority: String,
    get_capacity: Uri,
}

/// Messages in both directions, until it is dropped.
#[derive(Debug)]
pub(crate) struct Stream {
    _wire: Wire,
    requests: SendStream<Bytes>,
    answers: RecvStream,
    /// Bytes of answers that were not taken yet.
    received: BytesMut,
}

impl Stream {
    /// Sends a message.
    pub(crate) fn send(&mut self, message: &impl Message) -> Result<(), Failure> {
        Ok(self.requests.send_data(framed(message), false)?)
    }

    /// Returns the next answer. Cancel safe.
    pub(crate) async fn next<A: Message + Default>(&mut self) -> Result<A, Failure> {
        loop {
            if let Some((head, rest)) = self.received.split_first_chunk::<HEAD>() {
                let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
                if rest.len() >= length {
                    let message = self.received.split_to(HEAD + length).split_off(HEAD);
                    let broken = |error| Failure::Broken(format!("{error}"));
                    return A::decode(message).map_err(broken);
                }
            }
            let Some(part) = self.answers.data().await else {
                check(&self.answers.trailers().await?.unwrap_or_default())?;
                return Err(Failure::Broken("the stream is over".to_owned()));
            };
            let part = part?;
            self.answers.flow_control().release_capacity(part.len())?;
            self.received.extend_from_slice(&part);
        }
    }
}

impl Wire {
    /// Connects, from a chosen address, and starts HTTP/2.
    pub(crate) async fn open(to: SocketAddr, from: Option<IpAddr>) -> Result<Self, Failure> {
        let socket = TcpSocket::new_v4()?;
        if let Some(from) = from {
            socket.bind(SocketAddr::new(from, 0))?;
        }
        let stream = socket.connect(to).await?;
        stream.set_nodelay(true)?;
        let requests = match mtls::connect(stream).await {
            Ok(stream) => start(stream?).await?,
            Err(plain) => start(plain).await?,
        };
        let authority = to.to_string();
        Ok(Self {
            requests,
            get_capacity: uri(&authority, GET_CAPACITY),
            authority,
        })
    }

    /// Calls a method with one message, and reads the one message of the answer.
    pub(crate) async fn call<A: Message + Default>(
        &self,
        method: &str,
        message: &impl Message,
    ) -> Result<A, Failure> {
        let uri = match method {
            GET_CAPACITY => self.get_capacity.clone(),
            method => uri(&self.authority, method),
        };
        let mut requests = self.requests.clone().ready().await?;
        let (answer, mut body) = requests.send_request(head(uri), false)?;
        body.send_data(framed(message), true)?;
        let (head, mut body) = answer.await?.into_parts();
        if head.headers.contains_key("grpc-status") {
            check(&head.headers)?;
        }
        let answer = read(&mut body).await?;
        let trailers = body.trailers().await?;
        check(&trailers.unwrap_or(head.headers))?;
        let answer = answer
            .get(HEAD..)
            .map(A::decode)
            .and_then(Result::ok)
            .ok_or_else(|| Failure::Broken("the answer has no message".to_owned()))?;
        Ok(answer)
    }

    /// Opens a stream in both directions: sends the first message, and waits for the beginning of the first answer.
    pub(crate) async fn stream(
        &self,
        method: &str,
        message: &impl Message,
    ) -> Result<Stream, Failure> {
        let mut sender = self.requests.clone().ready().await?;
        let (answer, mut requests) =
            sender.send_request(head(uri(&self.authority, method)), false)?;
        requests.send_data(framed(message), false)?;
        let (head, mut answers) = answer.await?.into_parts();
        let Some(first) = answers.data().await else {
            check(&answers.trailers().await?.unwrap_or(head.headers))?;
            return Err(Failure::Broken("the stream is over".to_owned()));
        };
        let first = first?;
        answers.flow_control().release_capacity(first.len())?;
        Ok(Stream {
            _wire: self.clone(),
            requests,
            answers,
            received: BytesMut::from(first),
        })
    }
}

/// Starts HTTP/2.
async fn start(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> Result<SendRequest<Bytes>, h2::Error> {
    let handshake = Builder::new()
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .enable_push(false)
        // Until the server has sent its limit.
        .initial_max_send_streams(1)
        .handshake(stream);
    let (requests, connection) = handshake.await?;
    tokio::spawn(async move {
        // The callers that wait for an answer get the error.
        let _ = connection.await;
    });
    Ok(requests)
}

fn uri(authority: &str, method: &str) -> Uri {
    format!("http://{authority}{method}").parse().unwrap()
}

fn head(uri: Uri) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    *request.version_mut() = Version::HTTP_2;
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(TE, HeaderValue::from_static("trailers"));
    request
}

fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(HEAD + length);
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(length).unwrap());
    message.encode(&mut bytes).unwrap();
    bytes.freeze()
}

async fn read(body: &mut RecvStream) -> Result<Bytes, Failure> {
    let mut all = Bytes::new();
    while let Some(part) = body.data().await {
        let part = part?;
        body.flow_control().release_capacity(part.len())?;
        all = if all.is_empty() {
            part
        } else {
            [all, part].concat().into()
        };
    }
    Ok(all)
}

fn check(headers: &HeaderMap) -> Result<(), Failure> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match text("grpc-status") {
        Some("0") => Ok(()),
        Some(code) => {
            let message = text("grpc-message").unwrap_or_default();
            Err(Failure::Refused(format!("status {code}, {message}")))
        }
        None => Err(Failure::Broken("no status".to_owned())),
    }
}
