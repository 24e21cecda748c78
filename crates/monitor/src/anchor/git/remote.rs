//! Which git remotes and branches are accepted.

use thiserror::Error;

const MAX_URL_BYTES: usize = 1024;
const MAX_BRANCH_BYTES: usize = 100;

/// The address of a git remote, of a form that starts no program but git's own transports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitRemote {
    url: String,
    protocol: &'static str,
}

impl GitRemote {
    /// Reads `https://`, `http://`, `ssh://`, `git://` and `file:///` addresses, `host:path`, and
    /// absolute paths.
    pub fn parse(url: &str) -> Result<Self, GitRemoteError> {
        let refuse = |reason| Err(GitRemoteError { url: super::shown(url), reason });
        let is_strange = |character: char| character.is_control() || character.is_whitespace();
        if url.is_empty() || url.len() > MAX_URL_BYTES || url.contains(is_strange) {
            return refuse("it is empty, too long, or has spaces");
        }
        if url.starts_with('-') {
            return refuse("it begins like an option");
        }
        if url.starts_with('/') {
            return Ok(Self { url: url.to_owned(), protocol: "file" });
        }
        if let Some((scheme, rest)) = url.split_once("://") {
            let protocol = match scheme {
                "https" => "https",
                "http" => "http",
                "ssh" => "ssh",
                "git" => "git",
                "file" if rest.starts_with('/') => "file",
                _ => return refuse("only https, http, ssh, git and file:/// are known"),
            };
            let authority = rest.split('/').next().unwrap_or_default();
            let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
            if protocol != "file" && !is_host(host) {
                return refuse("its host is malformed");
            }
            if user.contains(':') {
                return refuse("it holds a password, which other users can read");
            }
            return Ok(Self { url: url.to_owned(), protocol });
        }
        // `helper::address` would start a program named by the address.
        match url.split_once(':') {
            Some((authority, path)) if !path.starts_with(':') && !path.starts_with('-') => {
                let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
                let is_plain = is_host(host) && !authority.starts_with('-') && !path.is_empty();
                if is_plain {
                    Ok(Self { url: url.to_owned(), protocol: "ssh" })
                } else {
                    refuse("it is no address git can push to safely")
                }
            }
            _ => refuse("it is no address git can push to safely"),
        }
    }

    /// The address as given.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The transport, as git names it; no other is allowed to the process.
    pub(super) fn protocol(&self) -> &'static str {
        self.protocol
    }

    /// Whether git serves the other side on this machine, as our own process.
    pub(super) fn is_local(&self) -> bool {
        self.protocol == "file"
    }
}

/// An address git is not run with.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{url}` is not accepted as a git remote: {reason}; give an https, ssh or absolute path")]
pub struct GitRemoteError {
    url: String,
    reason: &'static str,
}

fn is_host(host: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    !host.is_empty() && !host.starts_with('-') && host.bytes().all(is_known)
}

/// A name git is not given as a branch.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{branch}` is not accepted as a branch; use letters, digits, `-`, `_` and `/`")]
pub(super) struct BranchError {
    branch: String,
}

/// Refuses all but plain branch names, which is stricter than git.
pub(super) fn check_branch(branch: &str) -> Result<(), BranchError> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let is_part =
        |part: &str| !part.is_empty() && !part.starts_with('-') && part.bytes().all(is_known);
    if branch.len() <= MAX_BRANCH_BYTES && branch.split('/').all(is_part) {
        return Ok(());
    }
    Err(BranchError { branch: super::shown(branch) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_could_start_a_program_are_refused() {
        let good = [
            ("https://example.com/a.git", "https"),
            ("http://user@example.com:8080/a", "http"),
            ("ssh://git@[::1]:22/a", "ssh"),
            ("git://example.com/a", "git"),
            ("file:///srv/a.git", "file"),
            ("/srv/a.git", "file"),
            ("/srv/a::b", "file"),
            ("git@example.com:a/b.git", "ssh"),
            ("example.com:a", "ssh"),
        ];
        for (url, protocol) in good {
            assert_eq!(GitRemote::parse(url).unwrap().protocol(), protocol, "{url}");
        }
        let bad = [
            "",
            "-",
            "--upload-pack=touch /tmp/x",
            "ext::sh -c touch% /tmp/x",
            "ext::sh",
            "fd::17",
            "foo::bar",
            "ext://x/y",
            "ftp://example.com/a",
            "file://host/a",
            "file://-x",
            "ssh://-oProxyCommand=x/a",
            "ssh://user@-oProxyCommand=x/a",
            "-oProxyCommand=x:a",
            "user@-oProxyCommand=x:a",
            "host:-x",
            "host:",
            "./a",
            "a",
            "../a.git",
            "dir/a:b",
            "https://user:secret@example.com/a",
            "https:///a",
            "/a b",
            "/a\nb",
        ];
        for url in bad {
            assert!(GitRemote::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn only_plain_branches_are_accepted() {
        for branch in ["main", "seals/laptop-1", "A_b"] {
            assert!(check_branch(branch).is_ok(), "{branch}");
        }
        let long = "a".repeat(101);
        for branch in [
            "", "-f", "a/-f", "a/", "/a", "a//b", "..", "a.lock", "a:b", "+a", "a b", "é", "@{0}",
            &long,
        ] {
            assert!(check_branch(branch).is_err(), "{branch}");
        }
    }
}
