//! Ten thousand honest clients behind one address (a NAT, a shared proxy, sidecars on a host), with the default flags:
//! no request is refused.

use doorward_tests::besieged::TEMPLATES;
use doorward_tests::figures::refused;
use doorward_tests::honest::{HonestClient, channel};
use doorward_tests::processes::Server;
use doorward_tests::template_file::TemplateFile;
use tokio::task::JoinSet;

const CONNECTIONS: usize = 250;
const CLIENTS_EACH: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_clients_behind_one_address_are_refused_nothing() {
    let file = TemplateFile::new(TEMPLATES);
    let pages = ["--http-listen", "127.0.0.1:0"];
    let flags = [
        &pages[..],
        &["--templates", &file.path, "--state-dir", "none"],
    ]
    .concat();
    let mut server = Server::start(&flags);
    let mut connections = JoinSet::new();
    for connection in 0..CONNECTIONS {
        let channel = channel(&server.address);
        connections.spawn(async move {
            let clients = (0..CLIENTS_EACH).map(|number| {
                let id = format!("client-{connection}-{number}");
                // Half of them share a resource, and the other half have their own.
                let resource = match number % 2 {
                    0 => "honest/shared".to_owned(),
                    _ => format!("honest/{id}"),
                };
                HonestClient::new(channel.clone(), id, resource)
            });
            let mut clients: Vec<_> = clients.collect();
            for client in &mut clients {
                client.ask().await?;
            }
            for client in &mut clients {
                client.ask().await?;
            }
            Ok::<_, String>(clients)
        });
    }
    // All of them have their leases at the same time.
    let held: Vec<_> = connections.join_all().await.into_iter().collect();
    let mut releasing = JoinSet::new();
    for clients in held {
        let clients = clients.unwrap();
        releasing.spawn(async move {
            for mut client in clients {
                client.release().await?;
            }
            Ok::<_, String>(())
        });
    }
    for released in releasing.join_all().await {
        released.unwrap();
    }
    let refused = refused(&server.get("/metrics"));
    assert!(refused.iter().all(|(_, count)| *count == 0), "{refused:?}");
}
