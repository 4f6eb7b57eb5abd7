//! The link to the master's page, if another server is the master.
//!
//! The master's gRPC address is known. The address of its pages is known only if the master writes it to etcd. The
//! master writes the address that it listens on, which may be useless elsewhere. If it means any address, the link has
//! the host that the master advertises. If it is on loopback, there is a link only if the master's gRPC address is on
//! loopback too. Without a link, the page says in words what is known.

use std::net::SocketAddr;

use doorward_etcd::config::is_loopback;

/// Master, on the page of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterPage {
    /// Address of its gRPC.
    pub address: String,
    /// Address of its page, if it can probably be reached from elsewhere.
    pub link: Option<String>,
    /// Reason why there is no link. Empty: there is one.
    pub no_link: String,
}

impl MasterPage {
    /// Returns the master at `address`, which reports `pages` as the address of its pages.
    pub fn new(address: &str, pages: Option<&str>) -> Self {
        let link = match pages.map(|pages| (pages, pages.parse::<SocketAddr>())) {
            None => Err(
                "Where its page is, it has not said: look at the machine of that address."
                    .to_owned(),
            ),
            Some((_, Ok(pages))) if pages.ip().is_unspecified() => {
                let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
                Ok(format!("http://{host}:{}/", pages.port()))
            }
            Some((said, Ok(_))) if is_loopback(said) && !is_loopback(address) => {
                Err(format!("Its page is on its own machine only, at {said}."))
            }
            Some((said, Ok(_))) => Ok(format!("http://{said}/")),
            Some((said, Err(_))) => Err(format!("It says that its page is at {said}.")),
        };
        Self {
            address: address.to_owned(),
            no_link: link.as_ref().err().cloned().unwrap_or_default(),
            link: link.ok(),
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
