//! What the page of a server says of the master of its node, if that is another server.
//!
//! The master's gRPC address is known, and where its pages are only if it says so in etcd. It says the
//! address that it listens on, which is no link for everybody: one that means any address is combined
//! with the host that the master advertises; one on loopback is a link only if the master is on
//! loopback altogether. Otherwise the page says in words what is known.

use std::net::SocketAddr;

use doorward_etcd::config::is_loopback;

/// The master, as the page of a candidate tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterPage {
    /// Where it serves gRPC.
    pub address: String,
    /// Where its page is, if it can be reached from elsewhere as far as is known.
    pub link: Option<String>,
    /// Why there is no link. Empty: there is one.
    pub no_link: String,
}

impl MasterPage {
    /// The master at `address`, which says that it serves its pages at `pages`.
    pub fn new(address: &str, pages: Option<&str>) -> Self {
        let (link, no_link) = match pages.map(|pages| (pages, pages.parse::<SocketAddr>())) {
            None => (
                None,
                "Where its page is, it has not said: look at the machine of that address."
                    .to_owned(),
            ),
            Some((_, Ok(pages))) if pages.ip().is_unspecified() => {
                let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
                (
                    Some(format!("http://{host}:{}/", pages.port())),
                    String::new(),
                )
            }
            Some((said, Ok(_))) if is_loopback(said) && !is_loopback(address) => (
                None,
                format!("Its page is on its own machine only, at {said}."),
            ),
            Some((said, Ok(_))) => (Some(format!("http://{said}/")), String::new()),
            Some((said, Err(_))) => (None, format!("It says that its page is at {said}.")),
        };
        Self {
            address: address.to_owned(),
            link,
            no_link,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_the_master_from_wherever_it_is_followed_or_there_is_none() {
        for (address, pages, link) in [
            ("eu-0:6970", None, None),
            (
                "eu-0:6970",
                Some("10.0.0.1:6971"),
                Some("http://10.0.0.1:6971/"),
            ),
            ("eu-0:6970", Some("0.0.0.0:6971"), Some("http://eu-0:6971/")),
            (
                "[fe80::1]:6970",
                Some("[::]:6971"),
                Some("http://[fe80::1]:6971/"),
            ),
            ("eu-0:6970", Some("127.0.0.1:6971"), None),
            (
                "127.0.0.1:6970",
                Some("127.0.0.1:6971"),
                Some("http://127.0.0.1:6971/"),
            ),
            ("eu-0:6970", Some("\"><script>"), None),
        ] {
            let master = MasterPage::new(address, pages);
            assert_eq!(master.link.as_deref(), link, "{address} {pages:?}");
            assert_eq!(master.no_link.is_empty(), link.is_some(), "{master:?}");
        }
        let here = MasterPage::new("eu-0:6970", Some("127.0.0.1:6971")).no_link;
        assert!(here.contains("on its own machine only"), "{here}");
    }
}
