//! Who may ask: the link of the start, the cookie, and where a request may come from.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::header::{self, HeaderMap};
use subtle::ConstantTimeEq as _;

use crate::COOKIE;

/// What the page is served with. Both words are new at each start.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it is served: an address of this machine alone. One of its own keeps the cookie from
    /// other servers here, because a browser gives cookies to every port of an address.
    pub address: SocketAddr,
    /// The word in the link that is printed, good once.
    pub link: String,
    /// What the cookie holds.
    pub cookie: String,
    /// What forms hold.
    pub form: String,
}

/// Why a request is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is for another host: a name that someone else has pointed here.
    Host,
    /// It comes from another page.
    Origin,
    /// It has no cookie of ours.
    Stranger,
}

/// The door.
#[derive(Debug)]
pub(super) struct Door {
    config: Config,
    used: AtomicBool,
}

impl Door {
    pub(super) fn new(config: Config) -> Self {
        Self { config, used: AtomicBool::new(false) }
    }

    /// The words in forms.
    pub(super) fn form(&self) -> &str {
        &self.config.form
    }

    /// Whether a request is for this page.
    pub(super) fn host(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok()).ok_or(Refusal::Host)?;
        let known = hosts.next().is_none() && self.names().iter().any(|name| name == host);
        if known { Ok(()) } else { Err(Refusal::Host) }
    }

    fn names(&self) -> Vec<String> {
        let address = self.config.address;
        let mut names = vec![address.to_string()];
        if address.ip() == Ipv4Addr::LOCALHOST {
            names.push(format!("localhost:{}", address.port()));
        }
        names
    }

    /// Whether a request comes from someone whom the link has let in.
    pub(super) fn known(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut pairs = cookies.flat_map(|line| line.split(';'));
        let ours = |pair: &str| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == COOKIE).then(|| same(value, &self.config.cookie))
        };
        if pairs.any(|pair| ours(pair) == Some(true)) { Ok(()) } else { Err(Refusal::Stranger) }
    }

    /// Whether a request that changes something comes from this page itself.
    pub(super) fn own(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let origin = text("origin").and_then(|origin| origin.strip_prefix("http://"));
        let own = origin.is_some_and(|origin| self.names().iter().any(|name| name == origin));
        let site = text("sec-fetch-site").is_none_or(|site| site == "same-origin");
        if own && site { Ok(()) } else { Err(Refusal::Origin) }
    }

    /// Whether a request that only looks was made by this page or by the person at the browser: another
    /// page can lead here, and can neither load nor show anything of it.
    pub(super) fn looks(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let near = match text("sec-fetch-site") {
            None | Some("same-origin" | "none") => true,
            Some(_) => {
                text("sec-fetch-mode") == Some("navigate")
                    && text("sec-fetch-dest") == Some("document")
            }
        };
        if near { Ok(()) } else { Err(Refusal::Origin) }
    }

    /// Whether a form is one of this start.
    pub(super) fn is_form(&self, word: &str) -> bool {
        same(word, &self.config.form)
    }

    /// Takes the link, once: the cookie for it.
    pub(super) fn enter(&self, word: &str) -> Option<String> {
        if !same(word, &self.config.link) || self.used.swap(true, Ordering::SeqCst) {
            return None;
        }
        Some(format!("{COOKIE}={}; Path=/; HttpOnly; SameSite=Strict", self.config.cookie))
    }
}

fn same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn door() -> Door {
        Door::new(Config {
            address: "127.0.0.1:4000".parse().unwrap(),
            link: "link".into(),
            cookie: "crumb".into(),
            form: "form".into(),
        })
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn the_link_opens_once() {
        let door = door();
        assert!(door.enter("other").is_none());
        assert!(door.enter("link").unwrap().contains("HttpOnly; SameSite=Strict"));
        assert!(door.enter("link").is_none());
    }

    #[test]
    fn another_name_for_this_machine_is_refused() {
        let door = door();
        for host in ["127.0.0.1:4000", "localhost:4000"] {
            assert_eq!(door.host(&headers(&[("host", host)])), Ok(()), "{host}");
        }
        for host in
            ["evil.example:4000", "127.0.0.1", "localhost:4001", "127.0.0.1:4000.evil.example", ""]
        {
            assert_eq!(door.host(&headers(&[("host", host)])), Err(Refusal::Host), "{host}");
        }
        assert_eq!(door.host(&HeaderMap::new()), Err(Refusal::Host));
        let two = headers(&[("host", "127.0.0.1:4000"), ("host", "evil.example")]);
        assert_eq!(door.host(&two), Err(Refusal::Host));
    }

    #[test]
    fn a_cookie_is_needed_and_found_among_others() {
        let door = door();
        for line in ["wardkeep=crumb", "a=b; wardkeep=crumb", "wardkeep=old; wardkeep=crumb"] {
            assert_eq!(door.known(&headers(&[("cookie", line)])), Ok(()), "{line}");
        }
        for line in ["", "wardkeep=", "wardkeep=crum", "other=crumb", "wardkeep", "crumb"] {
            let known = door.known(&headers(&[("cookie", line)]));
            assert_eq!(known, Err(Refusal::Stranger), "{line}");
        }
    }

    #[test]
    fn another_page_can_lead_here_and_load_nothing() {
        let door = door();
        let asked = |site, mode, dest| {
            let pairs =
                [("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", dest)];
            door.looks(&headers(&pairs))
        };
        assert_eq!(door.looks(&HeaderMap::new()), Ok(()));
        assert_eq!(asked("none", "navigate", "document"), Ok(()));
        assert_eq!(asked("same-origin", "cors", "empty"), Ok(()));
        assert_eq!(asked("cross-site", "navigate", "document"), Ok(()));
        for (site, mode, dest) in [
            ("cross-site", "no-cors", "script"),
            ("cross-site", "navigate", "iframe"),
            ("same-site", "cors", "empty"),
            ("same-site", "no-cors", "image"),
        ] {
            assert_eq!(asked(site, mode, dest), Err(Refusal::Origin), "{site} {mode} {dest}");
        }
    }

    #[test]
    fn what_changes_something_comes_from_the_page() {
        let door = door();
        assert_eq!(door.own(&headers(&[("origin", "http://127.0.0.1:4000")])), Ok(()));
        for pairs in [
            &[][..],
            &[("origin", "null")],
            &[("origin", "https://127.0.0.1:4000")],
            &[("origin", "http://evil.example")],
            &[("origin", "http://127.0.0.1:4000"), ("sec-fetch-site", "cross-site")],
            &[("origin", "http://127.0.0.1:4000"), ("sec-fetch-site", "same-site")],
        ] {
            assert_eq!(door.own(&headers(pairs)), Err(Refusal::Origin), "{pairs:?}");
        }
    }
}
