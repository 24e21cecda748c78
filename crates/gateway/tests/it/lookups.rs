//! Lookups of names inside of requests, in other spellings.

use super::lab::{Lab, Proxy, status};

fn ask(proxy: &Proxy, path: &str, lines: &str) -> String {
    let head =
        format!("GET http://allowed.test{path} HTTP/1.1\r\nHost: allowed.test\r\n{lines}\r\n");
    proxy.send(head.as_bytes())
}

#[test]
fn lookups_of_names_have_no_other_spelling() {
    let proxy = Lab::new().start();
    for (path, lines) in [
        ("/dns-query?dns=AAAA", ""),
        ("/dns-query/?dns=AAAA", ""),
        ("/%64ns-query?dns=AAAA", ""),
        ("/x%2fdns-query?dns=AAAA", ""),
        ("/DNS-Query?dns=AAAA", ""),
        ("//dns-query;x=1?dns=AAAA", ""),
        ("/dns-query/profile1?dns=AAAA", ""),
        ("/resolve?name=c2VjcmV0.evil.test&type=A", ""),
        ("/resolve?type=A&%6eame=c2VjcmV0.evil.test", ""),
        ("/a/Resolve?name=b", ""),
        ("/x", "Content-Type: Application/DNS-Message\r\n"),
        ("/x", "Content-Type: application/oblivious-dns-message\r\n"),
        ("/x?dns=AAAA", "Accept: */*\r\nAccept: application/dns-message\r\n"),
        ("/x?dns=AAAA", "Accept: */*, application/dns-message\r\n"),
        ("/x?name=a", "Accept: application/dns-json\r\n"),
        ("/x?name=a", "Accept: text/html , Application/DNS-JSON;q=0.5\r\n"),
    ] {
        let answer = ask(&proxy, path, lines);
        assert_eq!(status(&answer), 403, "{path} {lines}");
        assert!(answer.contains("egress-name-lookup"), "{answer}");
    }
    assert_eq!(proxy.seen.dials(), 0);
}

#[test]
fn what_only_looks_like_a_lookup_passes() {
    let proxy = Lab::new().start();
    for (path, lines) in [
        ("/resolve", ""),
        ("/resolve?id=7", ""),
        ("/resolve/issue?name=x", ""),
        ("/resolver?name=x", ""),
        ("/issues/resolve?filename=x", ""),
        ("/dns-query-builder", ""),
        ("/search?q=/dns-query", ""),
        ("/dns?name=x", "Accept: application/json, */*\r\n"),
    ] {
        assert_eq!(status(&ask(&proxy, path, lines)), 200, "{path} {lines}");
    }
}
