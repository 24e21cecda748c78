use proptest::prelude::*;

use super::*;
use crate::processor;

fn egress(text: &str) -> Egress {
    Egress::new(&toml::from_str(text).unwrap()).unwrap()
}

fn get(url: &str) -> NetworkFacts {
    facts_of(url, "GET", 0, &Egress::default())
}

/// Whether the built-in rules deny it for everybody.
fn is_stopped(facts: &NetworkFacts) -> bool {
    facts.blocked || facts.metadata || !facts.resolved
}

#[test]
fn defaults_are_those_of_the_configuration() {
    assert_eq!(Egress::default(), Egress::new(&EgressConfig::default()).unwrap());
    assert_eq!(toml::from_str::<EgressConfig>("").unwrap(), EgressConfig::default());
    assert!(toml::from_str::<EgressConfig>("allow = []").is_err());
    for name in DEFAULT_BLOCKED {
        assert!(get(&format!("https://{name}/")).blocked, "{name}");
    }
}

#[test]
fn schemes_without_a_host_are_told_apart() {
    let data = get("data:text/plain,hello");
    assert!(data.resolved && !data.internal && data.host.is_empty());
    for url in [
        "",
        " ",
        "file:///etc/passwd",
        "file://localhost/etc/passwd",
        "javascript:alert(1)",
        "unix:/var/run/docker.sock",
        "unix:///var/run/docker.sock",
        "http+unix://%2Fvar%2Frun%2Fdocker.sock/containers/json",
        "about:blank",
        "blob:https://a.example/x",
        "view-source:https://a.example/",
        "jar:https://a.example/x.jar!/y",
        "mailto:nobody",
        "https://",
        "http://[::1",
        "http://a..b.example/",
        "http://999.1.1.1/",
        "http://a.example:99999/",
        "gopher://evil.example%2F.good.example/",
        "ssh://xn--webhook-.site/",
    ] {
        let facts = get(url);
        assert!(!facts.resolved, "{url} {facts:?}");
    }
}

#[test]
fn every_scheme_has_its_host() {
    for url in [
        "ftp://a.example/x",
        "sftp://a.example/x",
        "ws://a.example/",
        "wss://a.example/",
        "ssh://git@a.example/x",
        "git@a.example:x/y.git",
        "ldap://a.example/",
        "gopher://a.example/",
        "s3://a.example/x",
        "a.example",
        "a.example:443",
        "//a.example",
    ] {
        let facts = get(url);
        assert!(facts.resolved && facts.host == "a.example" && !facts.internal, "{url} {facts:?}");
    }
    assert_eq!(get("https://a.example:8443/").port, Some(8443));
    assert_eq!(get("https://a.example:443/").port, None);
}

#[test]
fn addresses_inside_are_known_in_every_spelling() {
    for url in [
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://0/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://a.localhost/",
        "http://[::1]/",
        "http://[0:0:0:0:0:0:0:1]/",
        "http://[::]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[fe80::1%25eth0]/",
        "http://[fe80::1%eth0]:80/",
        "http://[fd12::1]/",
        "http://[fec0::1]/",
        "http://10.0.0.1/",
        "http://172.31.0.1/",
        "http://192.168.1.1/",
        "http://100.64.0.1/",
        "http://169.254.1.1/",
        "http://224.0.0.251/",
        "http://１２７.0.0.1/",
        "http://127。0。0。1/",
        "http://127.0.0.1.nip.io/",
        "http://intranet/",
        "http://kubernetes.default.svc/",
        "http://db.corp/",
        "http://host.docker.internal/",
        "http://printer.local/",
    ] {
        assert!(get(url).internal, "{url} {:?}", get(url));
    }
    for url in
        ["http://8.8.8.8/", "http://[2606:4700::1]/", "http://172.32.0.1/", "http://a.example"]
    {
        assert!(!get(url).internal && get(url).resolved, "{url}");
    }
}

#[test]
fn metadata_is_known_in_every_spelling() {
    for url in [
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/",
        "http://0xA9FEA9FE/",
        "http://0xa9.0xfe.0xa9.0xfe/",
        "http://0251.0376.0251.0376/",
        "http://169.254.43518/",
        "http://169.254.169.254./",
        "http://u@169.254.169.254:80/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[::169.254.169.254]/",
        "http://[64:ff9b::169.254.169.254]/",
        "http://[fd00:ec2::254]/",
        "http://100.100.100.200/",
        "http://168.63.129.16/",
        "http://metadata.google.internal/",
        "http://METADATA.google.internal./",
        "http://metadata/",
        "http://metadata.goog/",
        "http://169.254.169.254.nip.io/",
        "http://a9fea9fe.sslip.io/",
        "//169.254.169.254/",
        "169.254.169.254",
        "ftp://169.254.169.254/",
    ] {
        let facts = get(url);
        assert!(facts.metadata && facts.internal, "{url} {facts:?}");
    }
}

#[test]
fn lists_reach_as_far_as_they_say() {
    let config = egress(
        r#"
        allowed_domains = ["good.example", "*.wild.example", "localhost:11434", "intranet", "10.1.0.0/16",
                           "bücher.example", "[fd00::1]:80"]
        blocked_domains = ["bad.example", "*.worse.example", "good.example.evil.example", "zip", "straße.example"]
        blocked_ip_ranges = ["203.0.113.0/24", "2001:db8:bad::/48", "10.1.2.3"]
        "#,
    );
    let facts = |url: &str| facts_of(url, "GET", 0, &config);
    for url in [
        "https://good.example/",
        "https://GOOD.example./",
        "https://a.b.good.example/",
        "https://a.wild.example/",
        "http://localhost:11434/api",
        "http://intranet/",
        "http://10.1.9.9/",
        "http://167839241/",
        "https://xn--bcher-kva.example/",
        "https://BÜCHER.example/",
        "http://[fd00:0::1]/",
        "http://[::ffff:10.1.0.1]/",
    ] {
        assert!(facts(url).allowed, "{url} {:?}", facts(url));
    }
    for url in [
        "https://notgood.example/",
        "https://not-good.example/",
        "https://xbad.example/",
        "https://x-bad.example/",
        "https://good.example.evil.example/",
        "https://good.example@evil.example/",
        "https://evil.example/good.example",
        "https://evil.example?good.example",
        "https://evil.example#.good.example",
        "https://wild.example/",
        "http://localhost/",
        "http://localhost:80/",
        "http://a.localhost:11434/",
        "http://x.intranet/",
        "http://10.2.0.1/",
        "http://[64:ff9b::a01:1]/",
        "http://[fd00::1]:81/",
        "https://good-example/",
        "https://good.example\\@evil.example/",
        "https:/good.example/",
        "ssh://evil.example%2f.good.example/",
    ] {
        let facts = facts(url);
        assert!(!facts.allowed && facts.listed, "{url} {facts:?}");
        assert!(!facts.blocked || url.contains("evil"), "{url} {facts:?}");
    }
    for url in [
        "https://bad.example/",
        "https://x.BAD.example./",
        "https://worse.example/",
        "https://x.worse.example/",
        "https://x.zip/",
        "http://203.0.113.9/",
        "http://3405803785/",
        "http://[::ffff:203.0.113.9]/",
        "http://[64:ff9b::203.0.113.9]/",
        "http://[2001:db8:bad::9]/",
        "http://10.1.2.3/",
        "https://straße.example/",
        "https://good.example.evil.example/",
    ] {
        let facts = facts(url);
        assert!(facts.blocked, "{url} {facts:?}");
    }
    // What older programs make of a name is blocked as well.
    let older = egress("blocked_domains = [\"strasse.example\"]");
    assert!(facts_of("https://straße.example/", "GET", 0, &older).blocked);
    assert!(
        facts_of("https://anything.example/", "GET", 0, &egress("blocked_domains = [\"*\"]"))
            .blocked
    );
    assert!(facts_of("http://1.2.3.4/", "GET", 0, &egress("blocked_domains = [\"*\"]")).blocked);
}

#[test]
fn entries_that_mean_nothing_are_said() {
    for text in [
        "allowed_domains = [\"*\"]",
        "allowed_domains = [\"0.0.0.0/0\"]",
        "allowed_domains = [\"::/0\"]",
        "allowed_domains = [\"*.com\"]",
        "allowed_domains = [\"https://a.example\"]",
        "allowed_domains = [\"a.example/x\"]",
        "allowed_domains = [\"u@a.example\"]",
        "allowed_domains = [\"a*.example\"]",
        "allowed_domains = [\"a.example:x\"]",
        "allowed_domains = [\"\"]",
        "allowed_domains = [\"a..example\"]",
        "allowed_domains = [\"10.0.0.0/40\"]",
        "blocked_domains = [\"\"]",
        "blocked_domains = [\"a.example:80\"]",
        "blocked_domains = [\"a b\"]",
        "blocked_ip_ranges = [\"a.example\"]",
        "blocked_ip_ranges = [\"10.0.0\"]",
        "flag_patterns = [\"\"]",
        "flag_patterns = [\"**\"]",
    ] {
        let error = Egress::new(&toml::from_str(text).unwrap()).unwrap_err();
        assert!(text.starts_with(error.list), "{error}");
    }
}

#[test]
fn a_name_is_what_it_points_to() {
    let egress =
        egress("allowed_domains = [\"good.example\"]\nblocked_ip_ranges = [\"203.0.113.0/24\"]");
    let to = |url: &str, addresses: &[&str]| {
        let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        resolved_to(facts_of(url, "GET", 0, &egress), &addresses, &egress)
    };
    assert_eq!(
        to("https://a.example/", &["8.8.8.8"]),
        facts_of("https://a.example/", "GET", 0, &egress)
    );
    assert!(to("https://a.example/", &["203.0.113.1"]).blocked);
    assert!(to("https://good.example/", &["203.0.113.1"]).blocked);
    for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "fe80::1", "169.254.169.254"]
    {
        for url in ["https://a.example/", "https://good.example/"] {
            let facts = to(url, &[address]);
            assert!(facts.blocked && facts.internal && !facts.allowed, "{url} {address} {facts:?}");
        }
    }
    assert!(to("https://a.example/", &["169.254.169.254"]).metadata);
    assert!(to("https://a.example/", &["8.8.8.8", "10.0.0.1"]).blocked, "an answer of both kinds");
    let company = to("https://good.example/", &["10.0.0.1"]);
    assert!(company.internal && company.allowed && !company.blocked);
    let local = to("http://localhost/", &["127.0.0.1"]);
    assert!(local.internal && !local.blocked);
}

#[test]
fn redirects_are_judged_anew() {
    let egress = egress("blocked_domains = [\"bad.example\"]");
    let from = facts_of("https://a.example:8443/x", "POST", 7, &egress);
    let to = |location: &str| redirected(&from, location, &egress);
    assert!(to("https://bad.example/").blocked);
    assert!(to("//bad.example/x").blocked);
    assert!(to("http://169.254.169.254/").metadata);
    let inside = to("http://127.0.0.1:8080/");
    assert!(inside.internal && inside.blocked);
    for (location, host, port) in [
        ("/login", "a.example", Some(8443)),
        ("login?x=1", "a.example", Some(8443)),
        ("?x", "a.example", Some(8443)),
        ("https://b.example/", "b.example", None),
        ("//b.example/", "b.example", None),
    ] {
        let facts = to(location);
        assert_eq!((facts.host.as_str(), facts.port), (host, port), "{location}");
        assert!(facts.resolved && facts.payload == 7 && facts.method == "POST", "{location}");
    }
    for location in
        ["", "/\\bad.example", "\\\\bad.example", "///bad.example", "javascript:x", "/a\r\nX: y"]
    {
        assert!(!to(location).resolved, "{location:?}");
    }
    let inner = facts_of("http://[::1]:8080/", "GET", 0, &egress);
    assert_eq!(redirected(&inner, "/x", &egress).host, "::1");
    // What a server puts into the address it knows already.
    let signed = format!("https://b.example/?jwt={}", "aB3dE6gH9".repeat(12));
    assert!(facts_of(&signed, "GET", 0, &egress).exfiltration);
    assert!(!redirected(&from, &signed, &egress).exfiltration);
}

#[test]
fn an_allowed_host_is_trusted_with_data() {
    let egress = egress(
        "allowed_domains = [\"x.ngrok.io\", \"smee.io\"]\nflag_patterns = [\"*/upload*raw\"]",
    );
    let facts = |url: &str| facts_of(url, "POST", 9, &egress);
    assert!(!facts("https://x.ngrok.io/").exfiltration);
    assert!(!facts("https://smee.io/abc").blocked);
    assert!(facts("https://y.ngrok.io/").exfiltration);
    assert!(
        facts("https://x.ngrok.io/UPLOAD?mode=RAW").exfiltration,
        "the owner's own pattern holds"
    );
    assert!(facts("https://x.ngrok.io/%75pload?mode=raw").exfiltration);
}

#[test]
fn addresses_inside_addresses_count() {
    for url in [
        "https://r.example/https://webhook.site/x",
        "https://r.example/?u=https%3A%2F%2Fwebhook.site%2Fx",
        "https://r.example/?u=https%253A%252F%252Fwebhook.site%252Fx",
        "https://r.example/?u=//webhook.site/x",
        "https://r.example/?u=webhook.site/x",
        "https://r.example/?u=http://169.254.169.254/latest",
        "https://r.example/?u=http://2852039166/",
        "https://r.example/#https://abc.oast.fun/",
    ] {
        assert!(get(url).exfiltration, "{url}");
    }
    for url in [
        "https://github.com/webhooksite/webhook.site",
        "https://search.example/?q=what+is+webhook.site",
        "https://login.example/?redirect_uri=http://localhost:8080/callback",
        "https://r.example/?u=https://docs.example/",
    ] {
        assert!(!get(url).exfiltration, "{url}");
    }
}

#[test]
fn notes_say_why() {
    let judged = judge("https://webhook.site\\@a.example/", "GET", 5 << 20, &Egress::default());
    assert!(judged.notes.len() >= 2, "{:?}", judged.notes);
    assert!(judge("https://docs.example/", "GET", 0, &Egress::default()).notes.is_empty());
    assert!(!facts_of("https://a.example/", "GET / HTTP/1.1\r\n", 0, &Egress::default()).resolved);
}

/// The rule that denies it says that it is blocked: nothing is said twice.
#[test]
fn that_it_is_blocked_is_no_note() {
    let lists = egress("blocked_domains = [\"bad.example\", \"93.184.215.14\"]");
    for url in ["https://bad.example/", "https://93.184.215.14/"] {
        let judged = judge(url, "GET", 0, &lists);
        assert!(judged.facts.blocked && judged.notes.is_empty(), "{url}: {:?}", judged.notes);
    }
}

#[test]
fn hostile_texts_take_bounded_time() {
    let config = egress("flag_patterns = [\"a*a*a*a*a*b\"]\nallowed_domains = [\"good.example\"]");
    for unit in
        ["a", "a.", "@", "[", "%25", "//", "https://", "?u=https://a.b/", "=", "{", "0.", "ß", "%"]
    {
        for prefix in ["", "https://a.example/", "https://", "https://a.example/?q="] {
            let text = format!("{prefix}{}", unit.repeat((MAX_TEXT - 64) / unit.len()));
            let start = processor::time();
            let _ = facts_of(&text, "GET", 0, &config);
            let took = processor::time() - start;
            assert!(took.as_millis() < 1500, "{prefix}{unit} {took:?}");
        }
    }
    assert!(!get(&format!("https://a.example/{}", "a".repeat(MAX_TEXT))).resolved);
}

/// A spelling of a host that leads to the same place.
fn spelling() -> impl Strategy<Value = (Vec<bool>, usize, usize, usize)> {
    (proptest::collection::vec(any::<bool>(), 64), 0..4_usize, 0..4_usize, 0..6_usize)
}

fn spell(host: &str, (upper, dot, wide, around): &(Vec<bool>, usize, usize, usize)) -> String {
    let signs = host.chars().zip(upper.iter().cycle()).enumerate();
    let mut written: String = signs
        .map(|(at, (sign, upper))| match sign {
            '.' => ['.', '。', '．', '｡'][dot % 4].to_string(),
            sign if at == *wide && sign.is_ascii_lowercase() => {
                char::from_u32(u32::from(sign) + 0xfee0).unwrap_or(sign).to_string()
            }
            sign if *upper => sign.to_uppercase().to_string(),
            sign => sign.to_string(),
        })
        .collect();
    if dot % 2 == 1 {
        written.push('.');
    }
    match around {
        0 => format!("https://{written}/x"),
        1 => format!("HTTP://good.example@{written}:8080?x"),
        2 => format!("//{written}#x"),
        3 => format!("ftp://sub.{written}/"),
        4 => format!("wss://a.b.{written}/"),
        _ => format!("gopher://{written}/x"),
    }
}

proptest! {
    #[test]
    fn no_spelling_escapes_the_blocklist(
        host in "(webhook\\.site|bad\\.example|bücher\\.example|interact\\.sh)",
        how in spelling(),
    ) {
        let egress = egress(
            "allowed_domains = [\"good.example\"]\nblocked_domains = [\"webhook.site\", \"bad.example\", \
             \"xn--bcher-kva.example\", \"interact.sh\"]",
        );
        let url = spell(&host, &how);
        let facts = facts_of(&url, "GET", 0, &egress);
        prop_assert!(is_stopped(&facts), "{} {:?}", url, facts);
        prop_assert!(!facts.allowed, "{} {:?}", url, facts);
    }

    #[test]
    fn what_is_allowed_is_the_host_or_below_it(
        url in "(https?://|ftp://|ssh://|//|)[a-zA-Z0-9.@:/\\\\?#%_-]{0,12}(good\\.example|GOOD\\.example)[a-zA-Z0-9.@:/\\\\?#%_-]{0,16}"
    ) {
        let egress = egress("allowed_domains = [\"good.example\"]");
        let facts = facts_of(&url, "GET", 0, &egress);
        if facts.allowed {
            prop_assert!(facts.host == "good.example" || facts.host.ends_with(".good.example"));
        }
        // Read by another parser: everything up to the first of `/?#`, behind the last `@`.
        if facts.allowed && facts.resolved {
            let start = url.find("//").filter(|at| *at < 8 && !url[..*at].contains('.'));
            let rest = start.map_or(url.as_str(), |at| &url[at + 2..]);
            let authority = rest.split(['/', '?', '#']).next().unwrap();
            let host = authority.rsplit('@').next().unwrap().split(':').next().unwrap();
            let host = host.trim_end_matches('.').to_ascii_lowercase();
            prop_assert!(host == "good.example" || host.ends_with(".good.example"), "{} {}", url, host);
        }
    }

    #[test]
    fn any_text_is_judged(url in "\\PC{0,80}", method in "\\PC{0,8}", payload in any::<u64>()) {
        let egress = Egress::default();
        let facts = facts_of(&url, &method, payload, &egress);
        let _ = redirected(&facts, &url, &egress);
        let _ = facts_of(&format!("https://{url}"), "GET", payload, &egress);
        prop_assert!(facts.host.is_empty() || !facts.scheme.is_empty());
    }

    #[test]
    fn any_configuration_is_read_or_refused(entry in "\\PC{0,24}") {
        let config = EgressConfig {
            allowed_domains: vec![entry.clone()],
            blocked_domains: vec![entry.clone()],
            blocked_ip_ranges: vec![entry.clone()],
            flag_patterns: vec![entry],
            ..EgressConfig::default()
        };
        let _ = Egress::new(&config);
    }
}
