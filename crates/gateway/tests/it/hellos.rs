//! A first message of TLS that is said again, after the host asked for other keys.

use std::io::{Read as _, Write as _};

use wardkeep_gateway::egress::hello::example;

use super::lab::{Lab, cut_by, read_all};

const CHANGE: [u8; 6] = [20, 3, 3, 0, 1, 1];

fn records(message: &[u8], size: usize) -> Vec<u8> {
    let mut all = Vec::new();
    for piece in message.chunks(size) {
        all.extend([22, 3, 3]);
        all.extend(u16::try_from(piece.len()).unwrap().to_be_bytes());
        all.extend_from_slice(piece);
    }
    all
}

/// What cuts a tunnel in which `then` follows the first message; `None` where it goes through.
fn follows(then: &[u8]) -> Option<String> {
    let proxy = Lab::new().start();
    let (_, mut stream) = proxy.tunnel("allowed.test:443");
    let hello = example(Some("allowed.test"), false);
    stream.write_all(&hello).unwrap();
    let mut back = vec![0; hello.len()];
    stream.read_exact(&mut back).unwrap();
    stream.write_all(then).unwrap();
    let mut back = vec![0; then.len()];
    if stream.read_exact(&mut back).is_ok() {
        return None;
    }
    read_all(&mut stream);
    let outcomes = proxy.seen.wait_outcomes(1);
    assert!(!proxy.seen.origin_text().contains("evil.test"));
    Some(cut_by(&outcomes[0].1.ended).to_owned())
}

#[test]
fn a_second_first_message_names_the_same_host() {
    let (same, other) = (example(Some("allowed.test"), false), example(Some("evil.test"), false));
    let change = CHANGE.to_vec();
    assert_eq!(follows(&[change.clone(), same.clone()].concat()), None);
    for (hello, rule) in [
        (other.clone(), "egress-sni"),
        (example(None, false), "egress-sni"),
        (example(Some("allowed.test"), true), "egress-hidden-name"),
    ] {
        for size in [1, 5, 60, 1 << 14] {
            let again = records(&hello[5..], size);
            assert_eq!(follows(&again).as_deref(), Some(rule), "{size}");
            let again = [change.clone(), again].concat();
            assert_eq!(follows(&again).as_deref(), Some(rule), "{size}");
        }
    }
    // What cannot be read in one way only, or has no end.
    let trailing = records(&[&same[5..], &[0]].concat(), 1 << 14);
    assert_eq!(follows(&trailing).as_deref(), Some("egress-not-tls"));
    let endless = records(&[&[1, 0, 0x90, 0, 3, 3][..], &[0; 0x9000]].concat(), 1 << 14);
    assert_eq!(follows(&endless).as_deref(), Some("egress-not-tls"));
    let broken_off = [records(&other[5..40], 100), vec![23, 3, 3, 0, 1, 0]].concat();
    assert_eq!(follows(&broken_off).as_deref(), Some("egress-not-tls"));
}

/// What follows in TLS 1.2 is of the same kind, and no first message.
#[test]
fn what_else_follows_passes() {
    let finished = |first: u8| records(&[&[first; 8][..], &[0xa5; 32]].concat(), 1 << 14);
    let data = [23, 3, 3, 0, 2, 1, 2];
    for then in [
        [records(&[16, 0, 0, 2, 7, 7], 100), CHANGE.to_vec(), finished(0)].concat(),
        [records(&[16, 0, 0, 2, 7, 7], 100), CHANGE.to_vec(), finished(1), data.to_vec()].concat(),
        [CHANGE.to_vec(), finished(0), data.to_vec()].concat(),
        [CHANGE.to_vec(), finished(7), finished(1), data.to_vec()].concat(),
        [CHANGE.to_vec(), finished(9)[..].to_vec(), data.to_vec()].concat(),
        data.to_vec(),
    ] {
        assert_eq!(follows(&then), None, "{then:?}");
    }
    // By chance it begins as a first message does.
    let chance = records(&[&[1, 0xb7, 3, 9, 0x44, 1, 2, 3][..], &[0xa5; 32]].concat(), 1 << 14);
    assert_eq!(follows(&[CHANGE.to_vec(), chance, data.to_vec()].concat()), None);
}
