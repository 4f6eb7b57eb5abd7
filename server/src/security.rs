//! TLS and identities of a server: reads the files again when they change, and watches the end of certificates.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use doorward_door::access::Access;
use doorward_tls::dialer::Dialer;
use doorward_tls::server::{self, ServerTls};
use doorward_tls::tokens::Tokens;
use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::warn;

use crate::clock;

/// Interval between two looks at the files.
const LOOK: Duration = Duration::from_secs(1);

/// Part of a certificate's life that is left when the log begins to warn: a fifth.
const WARN_BEFORE: u32 = 5;

/// Interval between two warnings.
const WARN_EVERY: Duration = Duration::from_secs(86_400);

/// Configuration of TLS and identities. The default has none.
#[derive(Clone, Debug, Default)]
pub struct SecurityConfig {
    /// Way to other servers.
    pub dialer: Dialer,
    /// Requirements on callers.
    pub access: Arc<Access>,
    /// Certificates whose end is watched.
    pub certificates: Vec<PathBuf>,
    /// Address of a port without TLS for Doorman's clients. Absent: there is none.
    pub plain_listen: Option<SocketAddr>,
    /// Whether the operator wants callers on a network without identities.
    pub is_insecure: bool,
    /// Host names under which browsers may ask for the pages, besides those that the server knows.
    pub http_hosts: Vec<String>,
}

/// Begin and end of each certificate, since the Unix epoch.
pub type Validities = BTreeMap<PathBuf, (Duration, Duration)>;

/// TLS and identities of a running server.
#[derive(Debug)]
pub struct Security {
    pub(crate) config: SecurityConfig,
    validities: Mutex<Validities>,
    /// Whether callers on a network need no identity.
    pub(crate) is_exposed: bool,
}

impl Security {
    /// Returns the state of a server that listens on these addresses. Warns if callers on a network need no identity.
    pub fn new(config: &SecurityConfig, listens: &[SocketAddr]) -> Self {
        let access = &config.access;
        let is_open = access.tls.is_none() || access.accepts_plain || !access.needs_identity;
        let is_outside = |it: &&SocketAddr| !it.ip().to_canonical().is_loopback();
        let plain = config.plain_listen.iter().find(is_outside);
        let open = if is_open { listens } else { &[] };
        let exposed = open.iter().find(is_outside);
        let of_plain = "give --plain-listen an address that only Doorman's clients reach";
        let of_all = "give --tls-cert, --tls-key, and --tls-client-ca or --tokens";
        for (address, remedy) in [(plain, of_plain), (exposed, of_all)] {
            if let (Some(address), false) = (address, config.is_insecure) {
                warn!(
                    %address,
                    "any program on the network can act as any client: {remedy}. The next version does not start \
                     like this without --insecure"
                );
            }
        }
        let security = Self {
            config: config.clone(),
            validities: Mutex::default(),
            is_exposed: exposed.or(plain).is_some(),
        };
        for path in &config.certificates {
            security.read_end(path);
        }
        security
    }

    /// Returns the requirements on callers.
    pub(crate) const fn access(&self) -> &Arc<Access> {
        &self.config.access
    }

    /// Returns the kinds of files, each with the reason why its changed files are not in force, if they are not.
    pub fn problems(&self) -> [(&'static str, Option<String>); 2] {
        let tls = self.config.access.tls.as_ref().and_then(ServerTls::problem);
        let tokens = self.config.access.tokens.as_ref().and_then(Tokens::problem);
        [("certificates", tls), ("tokens", tokens)]
    }

    /// Returns begin and end of each certificate.
    pub fn validities(&self) -> Validities {
        self.validities.lock().clone()
    }

    /// Returns whether the operator names this host for the pages.
    pub(crate) fn has_http_host(&self, host: &str) -> bool {
        let mut hosts = self.config.http_hosts.iter();
        hosts.any(|known| known.eq_ignore_ascii_case(host))
    }

    fn read_end(&self, path: &Path) {
        // An invalid file is reported elsewhere; the last valid certificate counts.
        if let Ok(validity) = server::validity(path) {
            self.validities.lock().insert(path.to_owned(), validity);
        }
    }

    /// Reads the files again whenever they change, and looks at once if it is told. Runs until the server ends: spawn
    /// it.
    pub(crate) async fn run(self: Arc<Self>, mut rereads: watch::Receiver<()>) {
        let mut warned_at = None;
        let mut ends_before = self.validities();
        let mut looks = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                _ = looks.tick() => {}
                Ok(()) = rereads.changed() => {}
            }
            let security = Arc::clone(&self);
            // Small files, but disks may be slow.
            let refreshed = tokio::task::spawn_blocking(move || security.refresh());
            if let Err(error) = refreshed.await {
                warn!(%error, "certificates cannot be read again");
            }
            let (now, ends) = (clock::wall(), self.validities());
            let is_due = warned_at.is_none_or(|warned| now.saturating_sub(warned) >= WARN_EVERY);
            if is_due || ends != ends_before {
                (warned_at, ends_before) = (Some(now), ends);
                self.warn_of_ends(now);
            }
        }
    }

    fn refresh(&self) {
        if let Some(tokens) = &self.config.access.tokens {
            // The log says why files are not in force.
            let _ = tokens.refresh();
        }
        let (mut own, mut is_new) = (&[][..], false);
        if let Some(tls) = &self.config.access.tls {
            (own, is_new) = (tls.files(), matches!(tls.refresh(), Ok(true)));
        }
        let paths: Vec<PathBuf> = self.validities.lock().keys().cloned().collect();
        for path in &paths {
            // The end is that of the certificate in force.
            if is_new || !own.contains(path) {
                self.read_end(path);
            }
        }
    }

    fn warn_of_ends(&self, now: Duration) {
        for (path, (begin, end)) in self.validities() {
            let left = end.saturating_sub(now);
            if left < end.saturating_sub(begin) / WARN_BEFORE {
                let (file, hours) = (path.display(), left.as_secs() / 3_600);
                warn!(%file, hours, "a certificate ends soon, or has ended");
            }
        }
    }
}
