//! A URL as it was written, and whether all programs would read the same from it.

use super::WEB;
use wardkeep_detect::urls::{Parsed, parse_url};

/// Longest URL that is looked at, in bytes.
pub const MAX_TEXT: usize = 64 << 10;

/// A URL, and why it may be read in another way.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) url: Parsed,
    pub(super) doubt: Option<&'static str>,
}

/// Reads a URL as a browser does.
pub(super) fn read(text: &str) -> Option<Reading> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_TEXT {
        return None;
    }
    let doubt = doubt(text);
    let url = parse_url(text)
        .or_else(|| parse_url(&without_zone(text)?))
        .or_else(|| parse_url(&from_scp(text)?))?;
    Some(Reading { url, doubt })
}

fn doubt(text: &str) -> Option<&'static str> {
    if text.chars().any(char::is_control) {
        return Some("control signs stand in the address");
    }
    let length =
        text.bytes().take_while(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b)).count();
    let (scheme, behind) = text.split_at(length);
    let rest = match behind.strip_prefix(':') {
        Some(rest) if rest.starts_with(['/', '\\']) => rest,
        // A browser reads these without slashes too.
        Some(_) if WEB.iter().any(|web| scheme.eq_ignore_ascii_case(web)) => "",
        _ if text.starts_with(['/', '\\']) => text,
        _ => return authority_doubt(text),
    };
    match rest.strip_prefix("//") {
        Some(rest) if !rest.starts_with(['/', '\\']) => authority_doubt(rest),
        _ => Some("the scheme is not followed by two slashes"),
    }
}

fn authority_doubt(rest: &str) -> Option<&'static str> {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('\\') {
        return Some("a backslash stands where some programs see the end of the host");
    }
    if authority.contains(char::is_whitespace) {
        return Some("a blank stands in the host");
    }
    let host = match authority.split_once('@') {
        Some((_, host)) if host.contains('@') => return Some("there is more than one `@`"),
        Some((_, host)) => host,
        None => authority,
    };
    if host.contains('%') && !host.starts_with('[') {
        return Some("the host is encoded");
    }
    let name = host.split(':').next().unwrap_or_default().trim_end_matches('.');
    let number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let octal = |part: &str| part.len() > 1 && part.starts_with('0') && number(part);
    if name.split('.').all(|part| number(part) || part.starts_with("0x"))
        && name.split('.').any(octal)
    {
        return Some("some programs read its numbers as octal and some do not");
    }
    None
}

/// `[fe80::1%25eth0]` without the name of the link.
fn without_zone(text: &str) -> Option<String> {
    let start = text.find("//").map_or(0, |at| at + 2);
    let end = start + text[start..].find(['/', '?', '#', '\\']).unwrap_or(text.len() - start);
    let authority = &text[start..end];
    let open = authority.rfind('@').map_or(0, |at| at + 1);
    let host = &authority[open..];
    let zone = host.starts_with('[').then(|| host.find('%')).flatten()?;
    let close = host.find(']').filter(|close| *close > zone)?;
    let sign = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte);
    host[zone..close].bytes().all(sign).then(|| {
        let from = start + open;
        format!("{}{}", &text[..from + zone], &text[from + close..])
    })
}

/// `git@host:path` as `ssh://git@host/path`.
fn from_scp(text: &str) -> Option<String> {
    let (user, rest) = text.split_once('@')?;
    let (host, path) = rest.split_once(':')?;
    let word = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
    };
    (word(user) && word(host))
        .then(|| format!("ssh://{user}@{host}/{}", path.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_read_differently_is_doubtful() {
        for text in [
            "https://good.example\\@evil.example/",
            "https:\\\\webhook.site\\a",
            "https:/\\evil.example/",
            "https:/evil.example/",
            "https:///evil.example/",
            "https:evil.example",
            "HTTP:80@evil.example/",
            "/\\evil.example",
            "///evil.example",
            "https://a@b@c.example/",
            "https://ev\til.example/",
            "https://a.example/\r\nHost: b.example",
            "https://webhook%2Esite/",
            "http://0177.0.0.1/",
            "http://0251.0376.0251.0376./",
            "http://010.8.8.8:80/",
            "https://a b.example/",
        ] {
            assert!(doubt(text).is_some(), "{text:?}");
        }
        for text in [
            "https://a.example/x?y=z#q",
            "//a.example/x",
            "a.example:8080/x",
            "HTTPS://A.EXAMPLE",
            "https://user:pass@a.example/a@b",
            "https://a.example?mail=a@b.example",
            "http://127.0.0.1:80/",
            "http://0.0.0.0/",
            "http://0x7f.1/",
            "http://2130706433/",
            "http://[fe80::1%25eth0]/",
            "ftp://a.example/x",
            "https://a.example/a b",
            "https://a.example/c:\\x",
            "https://0abc.example/",
            "git@a.example:x/y.git",
            "data:text/plain,x",
        ] {
            assert_eq!(doubt(text), None, "{text:?}");
        }
    }

    #[test]
    fn zones_are_taken_out_of_hosts_only() {
        assert_eq!(without_zone("http://[fe80::1%25e]/").as_deref(), Some("http://[fe80::1]/"));
        assert_eq!(
            without_zone("http://u@[fe80::1%e]:8/").as_deref(),
            Some("http://u@[fe80::1]:8/")
        );
        for text in [
            "http://[::1%25@webhook.site/x]/",
            "http://[::1%25@webhook.site]/",
            "http://[::1]/%25]",
            "http://a/[::1%25x]",
            "http://[::1%25x",
        ] {
            assert_eq!(without_zone(text), None, "{text}");
        }
    }
}
