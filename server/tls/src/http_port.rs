//! Detection of a server's HTTP port that was given by mistake for its gRPC port.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Longest wait for an answer, after connecting has already failed.
const PATIENCE: Duration = Duration::from_millis(500);

/// First bytes of every HTTP/1 answer.
const HTTP_1: &[u8] = b"HTTP/1.";

/// Returns advice if one of the addresses answers in HTTP/1.
pub async fn advice(addresses: impl IntoIterator<Item: ToString>) -> Option<String> {
    // Asks all at once, because connecting has already taken its time.
    let mut asked = JoinSet::new();
    for address in addresses {
        let address = address.to_string();
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

/// Returns `Some` if the address answers in HTTP/1.
async fn answers_http(address: &str) -> Option<()> {
    let mut connection = TcpStream::connect(address).await.ok()?;
    let request = format!("HEAD /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await.ok()?;
    let mut start = [0; HTTP_1.len()];
    connection.read_exact(&mut start).await.ok()?;
    (start == HTTP_1).then_some(())
}
