//! What Doorward asks of etcd, through everything that can happen to etcd, and to the connection.

use std::sync::Arc;
use std::time::Duration;

use doorward_etcd::{Error, EtcdConfig, EtcdConnection};
use doorward_tests::processes::PATIENCE;

mod calls;
mod follow;
mod outages;
mod refusals;

/// A call that takes longer has failed: short, and more than a busy machine needs.
const CALL_TIMEOUT: Duration = Duration::from_millis(700);

/// Impatient, so that a test of faults is soon over.
fn impatient(config: EtcdConfig) -> Arc<EtcdConfig> {
    Arc::new(EtcdConfig {
        call_timeout: CALL_TIMEOUT,
        ..config
    })
}

/// A connection that begins at an endpoint, which is otherwise left to chance.
fn beginning_at(config: &Arc<EtcdConfig>, address: &str) -> EtcdConnection {
    let connections = (0..1000).map(|_| EtcdConnection::new(Arc::clone(config)));
    let mut suitable = connections.filter(|connection| connection.endpoint().ends_with(address));
    suitable.next().unwrap()
}

/// A connection to an endpoint that has answered. A busy one may be left before it does.
async fn connected_to(config: &Arc<EtcdConfig>, address: &str) -> EtcdConnection {
    loop {
        let mut connection = beginning_at(config, address);
        get_at_last(&mut connection, "/a").await;
        if connection.endpoint().ends_with(address) {
            return connection;
        }
    }
}

/// Reads a key. However etcd is, this ends.
async fn get(connection: &mut EtcdConnection, key: &str) -> Result<Option<String>, Error> {
    let key = key.to_owned();
    let call = connection.call("get", async |client: &mut etcd_client::Client| {
        client.get(key, None).await
    });
    let answer = tokio::time::timeout(PATIENCE, call).await.unwrap()?;
    let value = answer.kvs().first().map(|kv| kv.value().to_vec());
    Ok(value.map(|value| String::from_utf8(value).unwrap()))
}

/// Reads a key until it is answered.
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
