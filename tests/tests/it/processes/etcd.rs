//! Doorward's calls to etcd, during faults of etcd and of the connection.

use std::sync::Arc;
use std::time::Duration;

use doorward_etcd::{Error, EtcdConfig, EtcdConnection};
use doorward_tests::processes::PATIENCE;

mod calls;
mod follow;
mod outages;
mod refusals;

/// Time after which a call has failed: short, and long enough for a busy machine.
const CALL_TIMEOUT: Duration = Duration::from_millis(700);

/// Returns an impatient configuration, so that a test of faults is short.
fn impatient(config: EtcdConfig) -> Arc<EtcdConfig> {
    Arc::new(EtcdConfig {
        call_timeout: CALL_TIMEOUT,
        ..config
    })
}

/// Returns a connection that begins at an endpoint, which is otherwise random.
fn beginning_at(config: &Arc<EtcdConfig>, address: &str) -> EtcdConnection {
    let connections = (0..1000).map(|_| EtcdConnection::new(Arc::clone(config)));
    let mut suitable = connections.filter(|connection| connection.endpoint().ends_with(address));
    suitable.next().unwrap()
}

/// Returns a connection to an endpoint that has answered. A busy one may be left before it does.
async fn connected_to(config: &Arc<EtcdConfig>, address: &str) -> EtcdConnection {
    loop {
        let mut connection = beginning_at(config, address);
        get_at_last(&mut connection, "/a").await;
        if connection.endpoint().ends_with(address) {
            return connection;
        }
    }
}

/// Reads a key. This ends in every state of etcd.
async fn get(connection: &mut EtcdConnection, key: &str) -> Result<Option<String>, Error> {
    let key = key.to_owned();
    let call = connection.call("get", async |client: &mut etcd_client::Client| {
        client.get(key, None).await
    });
    let answer = tokio::time::timeout(PATIENCE, call).await.unwrap()?;
    let value = answer.kvs().first().map(|kv| kv.value().to_vec());
    Ok(value.map(|value| String::from_utf8(value).unwrap()))
}

/// Reads a key until there is an answer.
async fn get_at_last(connection: &mut EtcdConnection, key: &str) -> Option<String> {
    let began = tokio::time::Instant::now();
    loop {
        match get(connection, key).await {
            Ok(value) => return value,
            Err(error) => assert!(began.elapsed() < PATIENCE, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
