//! The HTTP port of a server, given by mistake for its gRPC port: who finds that out says so.

use std::time::Duration;

use doorward_session::address::Address;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// How long an answer is waited for: connecting has failed already.
const PATIENCE: Duration = Duration::from_millis(500);

/// What every answer in HTTP/1 begins with.
const HTTP_1: &[u8] = b"HTTP/1.";

/// Which of the addresses answers in HTTP/1, and what to do then. None: none of them does.
pub async fn advice(addresses: &[Address]) -> Option<String> {
    // All at once: connecting has taken its time already.
    let mut asked = JoinSet::new();
    for address in addresses {
        let address = address.clone();
        asked.spawn(async move { answers_http(&address).await.map(|()| address) });
    }
    let found = async {
        while let Some(answers) = asked.join_next().await {
            if let Ok(Some(address)) = answers {
                return Some(address);
            }
        }
        None
    };
    let address = tokio::time::timeout(PATIENCE, found).await.ok()??;
    Some(format!(
        "{address} answers HTTP/1: if it is the port of a status page, give the gRPC port, 6970 unless the \
         server's --listen says otherwise"
    ))
}

/// Whether something there answers in HTTP/1.
async fn answers_http(address: &Address) -> Option<()> {
    let mut connection = TcpStream::connect(address.as_str()).await.ok()?;
    let request = format!("HEAD /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await.ok()?;
    let mut start = [0; HTTP_1.len()];
    connection.read_exact(&mut start).await.ok()?;
    (start == HTTP_1).then_some(())
}
