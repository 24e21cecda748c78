//! Any text with addresses in it, as one address, and any bytes as a numeric one.

#![no_main]

use std::net::IpAddr;

use wardkeep_detect::urls::{
    Host, UrlContext, UrlMatch, classify_address, find_urls, judge_url, parse_url, service_of,
};

fn judge(found: &UrlMatch) {
    for from_model in [false, true] {
        let context = UrlContext { from_model, ..found.context };
        for risk in judge_url(found, context) {
            assert!((0.0..=1.0).contains(&risk.weight), "{risk:?}");
        }
    }
    match &found.url.host {
        Host::Ipv4(address) => drop(classify_address(IpAddr::V4(*address))),
        Host::Ipv6(address) => drop(classify_address(IpAddr::V6(*address))),
        Host::Domain { ascii, .. } => drop(service_of(ascii)),
        Host::None => {}
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Some(bytes) = data.first_chunk::<4>() {
        let _ = classify_address(IpAddr::from(*bytes));
    }
    if let Some(bytes) = data.first_chunk::<16>() {
        let _ = classify_address(IpAddr::from(*bytes));
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    for found in find_urls(text) {
        let part = text.get(found.span.start..found.span.end);
        assert!(part.is_some_and(|part| !part.is_empty()), "{found:?}");
        judge(&found);
    }
    if let Some(url) = parse_url(text) {
        assert_eq!(parse_url(text).as_ref(), Some(&url));
        let span = (0..text.len()).into();
        judge(&UrlMatch { span, url, context: UrlContext::default() });
    }
});
