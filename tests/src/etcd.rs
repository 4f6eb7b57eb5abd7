//! A real etcd: members as processes on loopback, and faults for them.
//!
//! Members can be killed, restart with or without their data, and be frozen: then they keep their connections and stay
//! silent. The helpers that read and write ask the running members one after the other until one answers. So they
//! succeed whatever the state of the others.
//!
//! The timers are shorter than etcd's own, so that a new leader is elected within a second, and a lease may be as short
//! as that. A failed test prints the members' logs.

use std::fs;
use std::time::Duration;

use doorward_etcd::config::Endpoint;
use doorward_etcd::{EtcdConfig, Tls, User};
use etcd_client::{Certificate, Client, ConnectOptions, Identity, TlsOptions};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::certificates::{Authority, Certified};
use crate::processes::PATIENCE;
use member::Member;
pub use member::find;

mod keys;
mod member;
mod registry;

/// Password of the user `root`.
pub const PASSWORD: &str = "open sesame";

/// Time for a member to answer a helper before the next one is asked.
const ANSWER: Duration = Duration::from_secs(2);

/// Time between two looks at a condition.
const LOOK: Duration = Duration::from_millis(20);

/// Settings of an etcd.
#[derive(Clone, Debug)]
pub struct Setup {
    members: usize,
    has_users: bool,
    has_tls: bool,
    asks_for_certificates: bool,
    flags: Vec<String>,
}

impl Setup {
    /// Creates settings for a number of members without access control.
    pub fn new(members: usize) -> Self {
        Self {
            members,
            has_users: false,
            has_tls: false,
            asks_for_certificates: false,
            flags: Vec::new(),
        }
    }

    /// Adds users: `root`, with [`PASSWORD`]. No other user may do anything.
    #[must_use]
    pub fn with_users(mut self) -> Self {
        self.has_users = true;
        self
    }

    /// Requires TLS.
    #[must_use]
    pub fn with_tls(mut self) -> Self {
        self.has_tls = true;
        self
    }

    /// Requires TLS, and a certificate of each client.
    #[must_use]
    pub fn with_mutual_tls(mut self) -> Self {
        self.has_tls = true;
        self.asks_for_certificates = true;
        self
    }

    /// Adds a flag for every member.
    #[must_use]
    pub fn with_flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// Starts it, and waits until it answers.
    pub async fn start(self) -> Etcd {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new();
        let members = (0..self.members).map(|number| Member::new(folder.path(), number));
        let client = authority.certify("doorward", &[]);
        let mut etcd = Etcd {
            members: members.collect(),
            setup: self,
            clusters: 0,
            has_users: false,
            password: PASSWORD.to_owned(),
            authority,
            client,
            folder,
        };
        etcd.write_certificates();
        etcd.begin().await;
        etcd
    }
}

/// A running etcd. Its processes end when it is dropped, and its data is deleted.
#[derive(Debug)]
pub struct Etcd {
    members: Vec<Member>,
    setup: Setup,
    /// Number of clusters at these addresses so far.
    clusters: usize,
    /// Whether the users exist.
    has_users: bool,
    /// Password of `root`.
    password: String,
    /// The authority that signs its certificate, and those of its clients.
    pub authority: Authority,
    /// A certificate that it trusts.
    pub client: Certified,
    folder: TempDir,
}

impl Etcd {
    /// Starts one member.
    pub async fn start() -> Self {
        Setup::new(1).start().await
    }

    /// Starts a number of members.
    pub async fn cluster(members: usize) -> Self {
        Setup::new(members).start().await
    }

    /// Returns the number of members, running or not.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns a member's address for clients, `host:port`.
    pub fn address(&self, member: usize) -> &str {
        &self.members[member].address
    }

    /// Returns a member's URL for clients, `http://host:port` or `https://host:port`.
    pub fn endpoint(&self, member: usize) -> String {
        self.endpoint_at(self.address(member))
    }

    /// Returns the URLs of all members.
    pub fn endpoints(&self) -> Vec<String> {
        (0..self.len())
            .map(|member| self.endpoint(member))
            .collect()
    }

    /// Returns the access to all members.
    pub fn config(&self) -> EtcdConfig {
        let addresses = self.members.iter().map(|member| member.address.as_str());
        self.config_at(&addresses.collect::<Vec<_>>())
    }

    /// Returns the access by addresses that lead to members, such as those of proxies.
    pub fn config_at(&self, addresses: &[&str]) -> EtcdConfig {
        let endpoints = addresses
            .iter()
            .map(|address| Endpoint::parse(&self.endpoint_at(address)).unwrap());
        let mut config = EtcdConfig::new(endpoints.collect());
        if self.setup.has_tls {
            config.tls.ca = Some(self.authority.certificate.clone().into_bytes());
        }
        if self.setup.asks_for_certificates {
            config.tls = self.identified(config.tls);
        }
        if self.setup.has_users {
            config.user = Some(User {
                name: "root".to_owned(),
                password: self.password.clone(),
            });
        }
        config
    }

    fn identified(&self, tls: Tls) -> Tls {
        let certificate = self.client.certificate.clone().into_bytes();
        Tls {
            identity: Some((certificate, self.client.key.clone().into_bytes())),
            ..tls
        }
    }

    /// Kills a member (SIGKILL).
    pub fn kill(&mut self, member: usize) {
        self.members[member].kill();
    }

    /// Kills all members.
    pub fn kill_all(&mut self) {
        self.members.iter_mut().for_each(Member::kill);
    }

    /// Starts a member that was killed, with its data. It answers a little later, if enough members run: see
    /// [`Etcd::settled`].
    pub fn restart(&mut self, member: usize) {
        self.spawn(member);
    }

    /// Starts all members that were killed, and waits until all answer.
    pub async fn restart_all(&mut self) {
        for member in 0..self.len() {
            if !self.members[member].runs() {
                self.spawn(member);
            }
        }
        self.settled().await;
    }

    /// Ends all members, and starts them with the certificates of a new authority. After that, certificates of the old
    /// one are invalid.
    pub async fn renew_certificates(&mut self) {
        self.kill_all();
        self.authority = Authority::new();
        self.client = self.authority.certify("doorward", &[]);
        self.write_certificates();
        self.restart_all().await;
    }

    /// Changes the password of `root`.
    pub async fn change_password(&mut self, password: &str) {
        self.ask("change a password", async |client| {
            client.user_change_password("root", password).await
        })
        .await;
        password.clone_into(&mut self.password);
    }

    /// Ends all members, deletes their data, and sets up a new cluster at the same addresses.
    pub async fn wipe(&mut self) {
        self.kill_all();
        self.members.iter().for_each(Member::forget);
        self.begin().await;
    }

    /// Ends all members, copies their data, and starts them again.
    pub async fn back_up(&mut self) {
        self.kill_all();
        self.members.iter().for_each(Member::back_up);
        self.restart_all().await;
    }

    /// Ends all members, and starts them with the copied data.
    pub async fn restore(&mut self) {
        self.kill_all();
        self.members.iter().for_each(Member::restore);
        self.restart_all().await;
    }

    /// Stops a member (SIGSTOP): it keeps its connections, and stays silent.
    pub fn freeze(&mut self, member: usize) {
        self.members[member].freeze();
    }

    /// Continues a frozen member.
    pub fn thaw(&mut self, member: usize) {
        self.members[member].thaw();
    }

    /// Waits until all running members answer for the cluster.
    pub async fn settled(&self) {
        for member in self.able() {
            self.ask_members(&[member], "get", async |client| {
                client.get("settled", None).await
            })
            .await;
        }
    }

    /// Returns the present leader, once all running members agree.
    pub async fn leader(&self) -> usize {
        let began = Instant::now();
        loop {
            if let Some(leader) = self.agreed_leader().await {
                return leader;
            }
            assert!(began.elapsed() < PATIENCE, "there is no leader");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Returns a member that is not the leader.
    pub async fn follower(&self) -> usize {
        let leader = self.leader().await;
        let mut others = self.able().into_iter().filter(|member| *member != leader);
        others.next().unwrap()
    }

    async fn agreed_leader(&self) -> Option<usize> {
        let (mut leaders, mut own) = (Vec::new(), Vec::new());
        for member in self.able() {
            let status = self
                .ask_members(&[member], "status", async |client| client.status().await)
                .await;
            let id = status.header().map_or(0, |header| header.member_id());
            leaders.push((status.raft_term(), status.leader()));
            own.push((id, member));
        }
        leaders.dedup();
        let [(_, leader)] = leaders[..] else {
            return None;
        };
        let mut own = own.into_iter();
        own.find_map(|(id, member)| (id == leader).then_some(member))
    }

    /// Calls the running members until one answers.
    pub async fn ask<T>(
        &self,
        what: &str,
        ask: impl AsyncFn(&mut Client) -> Result<T, etcd_client::Error>,
    ) -> T {
        self.ask_members(&self.able(), what, ask).await
    }

    /// Opens a connection to a member.
    pub async fn connect(&self, member: usize) -> Result<Client, etcd_client::Error> {
        let config = self.config();
        let mut options = ConnectOptions::new()
            .with_timeout(ANSWER)
            .with_connect_timeout(ANSWER);
        if let Some(user) = config.user.filter(|_| self.has_users) {
            options = options.with_user(user.name, user.password);
        }
        if let Some(ca) = config.tls.ca {
            let mut tls = TlsOptions::new().ca_certificate(Certificate::from_pem(ca));
            if let Some((certificate, key)) = config.tls.identity {
                tls = tls.identity(Identity::from_pem(certificate, key));
            }
            options = options.with_tls(tls);
        }
        Client::connect([self.endpoint(member)], Some(options)).await
    }

    async fn ask_members<T>(
        &self,
        members: &[usize],
        what: &str,
        ask: impl AsyncFn(&mut Client) -> Result<T, etcd_client::Error>,
    ) -> T {
        let began = Instant::now();
        for member in members.iter().cycle() {
            let asking = async { ask(&mut self.connect(*member).await?).await };
            let problem = match tokio::time::timeout(ANSWER, asking).await {
                Ok(Ok(answer)) => return answer,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
            };
            assert!(began.elapsed() < PATIENCE, "{what}: {problem}");
            tokio::time::sleep(LOOK).await;
        }
        panic!("{what}: no member runs");
    }

    /// Returns the members that run and are not frozen.
    fn able(&self) -> Vec<usize> {
        let members = self.members.iter().enumerate();
        let able = members.filter(|(_, member)| member.is_able());
        able.map(|(number, _)| number).collect()
    }

    fn endpoint_at(&self, address: &str) -> String {
        format!("{}://{address}", self.scheme())
    }

    fn scheme(&self) -> &'static str {
        if self.setup.has_tls { "https" } else { "http" }
    }

    fn write_certificates(&self) {
        if self.setup.has_tls {
            let server = self.authority.certify("etcd", &["127.0.0.1", "localhost"]);
            let at = |name: &str| self.folder.path().join(name);
            fs::write(at("ca.pem"), &self.authority.certificate).unwrap();
            fs::write(at("cert.pem"), server.certificate).unwrap();
            fs::write(at("key.pem"), server.key).unwrap();
        }
    }

    /// Sets up a cluster.
    async fn begin(&mut self) {
        self.clusters += 1;
        self.has_users = false;
        (0..self.len()).for_each(|member| self.spawn(member));
        self.settled().await;
        if self.setup.has_users {
            self.ask("add users", async |client| {
                // An answer may have been lost.
                let _ = client.role_add("root").await;
                let _ = client.user_add("root", PASSWORD, None).await;
                client.user_grant_role("root", "root").await?;
                client.auth_enable().await
            })
            .await;
            self.has_users = true;
            self.settled().await;
        }
    }

    fn spawn(&mut self, member: usize) {
        let introductions = self.members.iter().map(Member::introduction);
        let cluster = introductions.collect::<Vec<_>>().join(",");
        let folder = self.folder.path().display();
        let mut flags = vec![
            format!("--initial-cluster={cluster}"),
            // Members of another cluster at the same addresses must not join.
            format!("--initial-cluster-token={folder}-{}", self.clusters),
            "--heartbeat-interval=50".to_owned(),
            "--election-timeout=500".to_owned(),
            "--bcrypt-cost=4".to_owned(),
        ];
        if self.setup.has_tls {
            flags.push(format!("--cert-file={folder}/cert.pem"));
            flags.push(format!("--key-file={folder}/key.pem"));
        }
        if self.setup.asks_for_certificates {
            flags.push("--client-cert-auth".to_owned());
            flags.push(format!("--trusted-ca-file={folder}/ca.pem"));
        }
        flags.extend(self.setup.flags.iter().cloned());
        let scheme = self.scheme();
        self.members[member].start(scheme, &flags);
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for member in &self.members {
                eprintln!(
                    "etcd at {} logged last:\n{}\n",
                    member.address,
                    member.log_tail()
                );
            }
        }
    }
}
