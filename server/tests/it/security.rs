//! TLS and identities of running servers, with real connections.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use doorward::tls::{ClientFiles, ClientTls};
use doorward::{Capacity, Client};
use doorward_door::listener::Address;
use doorward_engine::templates::Templates;
use doorward_proto::admin::v1::callers_client::CallersClient;
use doorward_proto::admin::v1::{WhoAmIRequest, WhoAmIResponse};
use doorward_proto::doorman::capacity_client::CapacityClient;
use doorward_proto::doorman::{DiscoveryRequest, GetServerCapacityRequest, ReleaseCapacityRequest};
use doorward_server::app::{Server, ServerConfig};
use doorward_server::edge::EdgeDoors;
use doorward_server::flags::SecurityFlags;
use doorward_server::rules::store::RulesPlace;
use doorward_server::security::SecurityConfig;
use doorward_server::status::ParentLink;
use doorward_server::transports::parent::ParentTransportConfig;
use doorward_tests::certificates::{Authority, Certified, SanType};
use doorward_tls::dialer::{Dialed, Dialer};
use doorward_tls::flags::TlsFlags;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::Endpoint;
use tonic::{Code, Status};

use crate::running::{PATIENCE, asked, config, eventually, request, started};

/// Certificates in files.
pub(crate) struct Files {
    folder: TempDir,
    pub(crate) authority: Authority,
}

impl Files {
    pub(crate) fn new() -> Self {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
        let files = Self { folder, authority };
        files.write("ca.pem", &files.authority.certificate);
        files.certify("server");
        files
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces a file as a whole, as programs that renew certificates do.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let (path, new) = (self.path(name), self.path("new"));
        fs::write(&new, text).unwrap();
        fs::rename(new, &path).unwrap();
        path
    }

    pub(crate) fn write_pair(&self, name: &str, pair: &Certified) -> (PathBuf, PathBuf) {
        (
            self.write(&format!("{name}.pem"), &pair.certificate),
            self.write(&format!("{name}.key"), &pair.key),
        )
    }

    /// Writes a certificate for this machine with a SPIFFE URI of that name.
    pub(crate) fn certify(&self, name: &str) -> (PathBuf, PathBuf) {
        let uri = format!("spiffe://example.com/{name}");
        let pair = self
            .authority
            .certify_with(name, &["localhost", "127.0.0.1"], |params| {
                let uri = SanType::URI(uri.try_into().unwrap());
                params.subject_alt_names.push(uri);
            });
        self.write_pair(name, &pair)
    }

    /// Returns flags for a server with mutual TLS.
    pub(crate) fn flags(&self) -> SecurityFlags {
        SecurityFlags {
            tls: TlsFlags {
                ca: Some(self.path("ca.pem")),
                cert: Some(self.path("server.pem")),
                key: Some(self.path("server.key")),
                token_file: None,
            },
            tls_client_ca: Some(self.path("ca.pem")),
            ..SecurityFlags::default()
        }
    }

    pub(crate) fn client(&self, identity: Option<&str>, token: Option<&str>) -> ClientTls {
        let pair = |name| {
            (
                self.path(&format!("{name}.pem")),
                self.path(&format!("{name}.key")),
            )
        };
        ClientTls::open(ClientFiles {
            ca: self.path("ca.pem"),
            identity: identity.map(pair),
            token: token.map(|token| self.write(&format!("{token}.token"), token)),
        })
        .unwrap()
    }
}

pub(crate) async fn serve(security: SecurityConfig) -> Server {
    started(ServerConfig {
        security,
        ..config()
    })
    .await
}

pub(crate) fn channel(server: &Server, tls: Option<ClientTls>) -> Dialed {
    let endpoint = format!("http://{}", server.grpc_address());
    Dialer::new(tls).channel(&Endpoint::from_shared(endpoint).unwrap())
}

async fn who(server: &Server, tls: Option<ClientTls>) -> Result<WhoAmIResponse, Status> {
    let mut callers = CallersClient::new(channel(server, tls));
    let answer = callers.who_am_i(WhoAmIRequest {}).await;
    answer.map(tonic::Response::into_inner)
}

async fn is_trusted(server: &Server, files: &Files, name: &str) -> bool {
    who(server, Some(files.client(Some(name), None)))
        .await
        .is_ok()
}

/// Returns a hash as files have it.
fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn tokens(files: &Files) -> PathBuf {
    use std::fmt::Write as _;

    let mut text = "tokens:\n".to_owned();
    for (name, roles) in [("batch", "client"), ("ops", "operator"), ("leaf", "server")] {
        let hash = hex(&doorward_tls::tokens::hash(name.as_bytes()));
        writeln!(text, "- name: {name}\n  sha256: {hash}\n  roles: [{roles}]").unwrap();
    }
    files.write("tokens.yaml", &text)
}

#[tokio::test]
async fn a_caller_is_who_its_certificate_or_its_token_says() {
    let files = Files::new();
    files.certify("orders");
    let mut flags = files.flags();
    flags.tokens = Some(tokens(&files));
    let server = serve(flags.config().unwrap()).await;
    for (certificate, token, expected) in [
        (Some("orders"), None, "spiffe://example.com/orders"),
        (None, Some("batch"), "token:batch"),
        (None, Some("ops"), "token:ops"),
        (None, Some("leaf"), "token:leaf"),
        (Some("orders"), Some("batch"), "token:batch"),
    ] {
        let answer = who(&server, Some(files.client(certificate, token))).await;
        assert_eq!(answer.unwrap().identity(), expected);
    }
    for (certificate, token, code, problem) in [
        (None, None, Code::Unauthenticated, "prove who calls"),
        (
            None,
            Some("another"),
            Code::Unauthenticated,
            "does not know the token",
        ),
        (
            Some("orders"),
            Some("another"),
            Code::Unauthenticated,
            "does not know",
        ),
    ] {
        let refused = who(&server, Some(files.client(certificate, token))).await;
        let refused = refused.unwrap_err();
        assert_eq!(
            refused.code(),
            code,
            "{certificate:?} {token:?}: {refused:?}"
        );
        assert!(refused.message().contains(problem), "{refused:?}");
    }
}

#[tokio::test]
async fn a_token_and_a_certificate_may_do_what_their_roles_say() {
    let files = Files::new();
    files.certify("orders");
    files.certify("servers-eu");
    let mut flags = files.flags();
    flags.tokens = Some(tokens(&files));
    flags.child_identities = vec!["spiffe://example.com/servers-*".to_owned()];
    let server = serve(flags.config().unwrap()).await;
    for (certificate, token, may_ask, may_be_child) in [
        (Some("orders"), None, true, false),
        (Some("servers-eu"), None, true, true),
        (None, Some("batch"), true, false),
        (None, Some("ops"), true, false),
        (None, Some("leaf"), false, true),
    ] {
        let tls = files.client(certificate, token);
        let mut caller = CapacityClient::new(channel(&server, Some(tls)));
        let name = certificate.or(token).unwrap();
        let asked = caller
            .get_capacity(request(name, vec![asked("fair/a", 1.0)]))
            .await;
        let as_child = GetServerCapacityRequest {
            server_id: name.to_owned(),
            ..GetServerCapacityRequest::default()
        };
        let as_child = caller.get_server_capacity(as_child).await;
        for (role, is_allowed, answer) in [
            ("client", may_ask, asked.map(drop)),
            ("server", may_be_child, as_child.map(drop)),
        ] {
            match answer {
                Ok(()) => assert!(is_allowed, "{name} as {role}"),
                Err(refused) => {
                    assert!(!is_allowed, "{name} as {role}: {refused:?}");
                    assert_eq!(refused.code(), Code::PermissionDenied);
                    let needed = format!("needs the role \"{role}\"");
                    assert!(refused.message().contains(&needed), "{refused:?}");
                }
            }
        }
        caller.discovery(DiscoveryRequest {}).await.unwrap();
    }
}

#[tokio::test]
async fn a_redis_client_is_answered_once_it_has_given_a_token() {
    let files = Files::new();
    let mut flags = files.flags();
    flags.tokens = Some(tokens(&files));
    let rules = files.write("rules.yaml", "domain: other\nempty: true\n");
    let server = started(ServerConfig {
        security: flags.config().unwrap(),
        rules: Some(RulesPlace::of_files(rules).unwrap()),
        doors: EdgeDoors {
            redis_listen: Some(Address::Unix(files.path("redis"))),
            ..EdgeDoors::default()
        },
        ..config()
    })
    .await;
    let mut redis = redis_client(&files, None).await;
    for (command, expected) in [
        ("THROTTLE k 5 10 1", "-NOAUTH"),
        ("PING", "-NOAUTH"),
        ("AUTH another", "-WRONGPASS"),
        ("THROTTLE k 5 10 1", "-NOAUTH"),
        // The token of a child server.
        ("AUTH leaf", "-WRONGPASS"),
        ("THROTTLE k 5 10 1", "-NOAUTH"),
        ("AUTH batch", "+OK"),
    ] {
        let answer = exchange(&mut redis, command).await;
        assert!(answer.starts_with(expected), "{command}: {answer}");
    }
    // The rules may not be read yet.
    let mut decides = async || {
        let answer = exchange(&mut redis, "THROTTLE k 5 10 1").await;
        answer.starts_with("*5")
    };
    eventually("the door decides", &mut decides).await;
    drop(server);
}

/// Returns the answer to a command. It is empty if the connection is closed.
pub(crate) async fn exchange(redis: &mut TlsStream<UnixStream>, command: &str) -> String {
    let line = format!("{command}\r\n");
    let mut answer = [0; 1024];
    let count = match redis.write_all(line.as_bytes()).await {
        Ok(()) => redis.read(&mut answer).await.unwrap_or(0),
        Err(_) => 0,
    };
    String::from_utf8(answer[..count].to_vec()).unwrap()
}

/// Connects to the Redis port by TLS, with a certificate if there is one.
pub(crate) async fn redis_client(
    files: &Files,
    certificate: Option<&str>,
) -> TlsStream<UnixStream> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_file(files.path("ca.pem")).unwrap();
    roots.add(authority).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match certificate {
        None => config.with_no_client_auth(),
        Some(name) => {
            let certificate = files.path(&format!("{name}.pem"));
            let chain = vec![CertificateDer::from_pem_file(certificate).unwrap()];
            let key = files.path(&format!("{name}.key"));
            let key = PrivateKeyDer::from_pem_file(key).unwrap();
            config.with_client_auth_cert(chain, key).unwrap()
        }
    };
    let socket = UnixStream::connect(files.path("redis")).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, socket).await.unwrap()
}

#[tokio::test]
async fn a_name_belongs_to_the_identity_that_used_it_first() {
    let files = Files::new();
    for name in ["orders", "billing"] {
        files.certify(name);
    }
    let server = serve(files.flags().config().unwrap()).await;
    let of =
        |name: &str| CapacityClient::new(channel(&server, Some(files.client(Some(name), None))));
    let (mut orders, mut billing) = (of("orders"), of("billing"));
    let ask = || request("orders-1", vec![asked("fair/a", 10.0)]);
    orders.get_capacity(ask()).await.unwrap();
    let release = || ReleaseCapacityRequest {
        client_id: "orders-1".to_owned(),
        resource_id: vec!["fair/a".to_owned()],
        ..ReleaseCapacityRequest::default()
    };
    let as_child = || GetServerCapacityRequest {
        server_id: "eu".to_owned(),
        ..GetServerCapacityRequest::default()
    };
    orders.get_server_capacity(as_child()).await.unwrap();
    let refused = [
        billing.get_capacity(ask()).await.map(drop),
        billing.release_capacity(release()).await.map(drop),
        billing.get_server_capacity(as_child()).await.map(drop),
    ];
    for refused in refused {
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
        assert!(refused.message().contains("belongs to another identity"));
    }
    orders.get_capacity(ask()).await.unwrap();
    orders.release_capacity(release()).await.unwrap();
}

/// Starts the leaf `eu` below a root. Returns it with a client, which has the certificate `orders`.
async fn below(root: &Server, files: &Files) -> (Server, Client) {
    let leaf = started(ServerConfig {
        node_name: "eu".to_owned(),
        templates: Templates::default(),
        parent: Some(ParentTransportConfig {
            servers: vec![root.grpc_address().to_string()].into(),
            round: Duration::from_millis(1),
            slow_round: Duration::from_millis(1),
        }),
        security: files.flags().config().unwrap(),
        ..config()
    })
    .await;
    let client = Client::builder()
        .id("orders-1")
        .address(format!("https://{}", leaf.grpc_address()))
        .tls(files.client(Some("orders"), None))
        .connect()
        .await
        .unwrap();
    (leaf, client)
}

#[tokio::test]
async fn a_tree_leases_and_clients_find_the_master_by_tls_alone() {
    let files = Files::new();
    files.certify("orders");
    let root = serve(files.flags().config().unwrap()).await;
    let (_leaf, client) = below(&root, &files).await;
    let resource = client.resource("fair/a").wants(30.0).open().unwrap();
    resource.wait_for_lease(PATIENCE).await.unwrap();
    let granted = Capacity::Limited(30.0);
    eventually("all is granted", &mut async || {
        resource.capacity() == granted
    })
    .await;
    client.close().await;
}

#[tokio::test]
async fn a_child_whose_name_belongs_to_another_identity_is_out_of_reach_and_shows_the_reason() {
    let files = Files::new();
    files.certify("orders");
    let root = serve(files.flags().config().unwrap()).await;
    let mut first = CapacityClient::new(channel(&root, Some(files.client(Some("orders"), None))));
    let as_child = GetServerCapacityRequest {
        server_id: "eu".to_owned(),
        ..GetServerCapacityRequest::default()
    };
    first.get_server_capacity(as_child).await.unwrap();
    let (leaf, client) = below(&root, &files).await;
    let _resource = client.resource("fair/a").wants(30.0).open().unwrap();
    eventually("the leaf shows the reason", &mut async || {
        let parent = leaf.state().parent.borrow().clone().unwrap();
        let problem = parent.problem.unwrap_or_default();
        parent.link == ParentLink::Down && problem.contains("belongs to another identity")
    })
    .await;
}

#[tokio::test]
async fn authorities_and_certificates_are_replaced_three_times_and_no_call_fails() {
    let mut files = Files::new();
    files.certify("orders");
    let server = serve(files.flags().config().unwrap()).await;
    let tls = files.client(Some("orders"), None);
    let mut kept = CapacityClient::new(channel(&server, Some(tls.clone())));
    let mut works = async || {
        let mut answer = kept.discovery(DiscoveryRequest {}).await;
        // A call that was not sent before its connection ended. gRPC sends it again, tonic leaves that to its caller.
        if let Err(status) = &answer
            && status.code() == Code::Cancelled
        {
            answer = kept.discovery(DiscoveryRequest {}).await;
        }
        answer.unwrap();
        who(&server, Some(tls.clone())).await.unwrap();
    };
    works().await;
    for _ in 0..3 {
        let former = std::mem::replace(&mut files.authority, Authority::new());
        let (old, new) = (
            former.certificate.clone(),
            files.authority.certificate.clone(),
        );
        files.write("ca.pem", &format!("{old}{new}"));
        files.certify("probe");
        let mut trusts_probe = async || {
            works().await;
            is_trusted(&server, &files, "probe").await
        };
        eventually("both authorities are trusted", &mut trusts_probe).await;
        let probe = former.certify("former", &[]);
        files.write_pair("former", &probe);
        files.certify("server");
        files.certify("orders");
        files.write("new-ca.pem", &new);
        let by_new = ClientTls::open(ClientFiles {
            ca: files.path("new-ca.pem"),
            identity: Some((files.path("probe.pem"), files.path("probe.key"))),
            token: None,
        })
        .unwrap();
        let mut serves = async || {
            works().await;
            who(&server, Some(by_new.clone())).await.is_ok()
        };
        eventually("the new certificate is served", &mut serves).await;
        files.write("ca.pem", &new);
        let mut forgotten = async || {
            works().await;
            !is_trusted(&server, &files, "former").await
        };
        eventually("the old authority is forgotten", &mut forgotten).await;
    }
}
