//! Rules about methods, and requests that are to be taken for another one.

use super::lab::{Lab, Proxy, status};

fn with(allow: &str, deny: &[&str]) -> Proxy {
    let mut lab = Lab::new();
    lab.allow = vec![allow.to_owned()];
    lab.deny = deny.iter().map(|rule| (*rule).to_owned()).collect();
    lab.start()
}

fn ask(proxy: &Proxy, method: &str, lines: &str) -> u16 {
    let head =
        format!("{method} http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n{lines}\r\n");
    status(&proxy.send(head.as_bytes()))
}

#[test]
fn a_denied_method_has_no_other_spelling() {
    let proxy = with("allowed.test", &["POST,DELETE allowed.test"]);
    for method in ["POST", "post", "pOST", "Delete"] {
        assert_eq!(ask(&proxy, method, ""), 403, "{method}");
    }
    for lines in [
        "X-HTTP-Method-Override: DELETE\r\n",
        "X-HTTP-Method: delete\r\n",
        "X-Method-Override: PUT, DELETE\r\n",
        "X-Method-Override: PUT\r\nX-Method-Override: DELETE\r\n",
    ] {
        assert_eq!(ask(&proxy, "PUT", lines), 403, "{lines}");
    }
    assert_eq!(proxy.seen.dials(), 0);
    assert_eq!(ask(&proxy, "PUT", "X-HTTP-Method-Override: PATCH\r\n"), 200);
}

/// What is in a tunnel cannot be held against such a rule.
#[test]
fn a_denied_method_has_no_tunnel() {
    let proxy = with("allowed.test", &["POST allowed.test"]);
    assert_eq!(proxy.tunnel("allowed.test:443").0, 403);
    assert_eq!(proxy.socks(b"allowed.test", 443).0, 2);
    assert_eq!(proxy.seen.dials(), 0);
    // Where each request is read, each is judged.
    assert_eq!(proxy.tunnel("allowed.test:80").0, 200);
    assert_eq!(ask(&proxy, "GET", ""), 200);
}

#[test]
fn an_allowed_method_has_one_spelling() {
    let proxy = with("GET allowed.test", &[]);
    for (method, lines) in [
        ("get", ""),
        ("GET", "X-HTTP-Method: GET, DELETE\r\n"),
        ("GET", "X-HTTP-Method: delete\r\n"),
    ] {
        assert_eq!(ask(&proxy, method, lines), 403, "{method} {lines}");
    }
    assert_eq!(ask(&proxy, "GET", "X-HTTP-Method: GET\r\n"), 200);
}
