//! `wardkeep serve` by the real binary, over plain TCP: what a browser may do, and what others may not.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::approvals::Place;
use crate::shared::is_harmless;
use crate::state::{Proxy, Scene};

/// A browser that holds the cookie.
struct Browser<'a> {
    page: &'a Proxy<'a>,
    address: String,
    cookie: String,
}

impl<'a> Browser<'a> {
    fn new(page: &'a Proxy<'a>) -> Self {
        let address = page.ready["address"].as_str().unwrap().to_owned();
        let mut browser = Self { page, address, cookie: String::new() };
        let link = page.ready["link"].as_str().unwrap();
        let path = link.split_once(&browser.address).unwrap().1;
        let answer = browser.get(path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let line = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        assert!(line.contains("HttpOnly") && line.contains("SameSite=Strict"), "{line}");
        browser.cookie = line.split(';').next().unwrap().to_owned();
        browser
    }

    fn get(&self, path: &str) -> String {
        let Self { address, cookie, .. } = self;
        self.page.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
        ))
    }

    fn page(&self, path: &str) -> String {
        let answer = self.get(path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    fn post(&self, path: &str, fields: &[(&str, &str)], headers: &str) -> String {
        let Self { address, cookie, .. } = self;
        let pairs = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value)));
        let body = pairs.collect::<Vec<_>>().join("&");
        self.page.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\n{headers}\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        ))
    }

    /// As the page's own forms do.
    fn send(&self, path: &str, fields: &[(&str, &str)]) -> String {
        self.post(path, fields, &format!("Origin: http://{}\r\n", self.address))
    }
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The value of a hidden field.
fn hidden(page: &str, name: &str) -> String {
    let after = page
        .split_once(&format!("name=\"{name}\" value=\""))
        .unwrap_or_else(|| panic!("{name}: {page}"));
    after.1.split_once('"').unwrap().0.to_owned()
}

fn scene() -> Scene {
    let scene = Scene::new();
    fs::create_dir_all(scene.at("ws")).unwrap();
    fs::write(scene.at("ws/SOUL.md"), "# My Soul\n").unwrap();
    scene.expect(0, "s", &["init", "ws"]);
    scene
}

const VIEWS: [&str; 6] = ["/", "/timeline", "/requests", "/proposals", "/policy", "/report"];

#[test]
fn only_the_one_link_lets_in() {
    let scene = scene();
    let page = Proxy::start(&scene, "serve", &[]);
    let address = page.ready["address"].as_str().unwrap();
    let get = |path: &str, host: &str| {
        page.send(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    };
    for path in VIEWS.iter().copied().chain(["/live", "/timeline/rows", "/record/00", "/none"]) {
        let answer = get(path, address);
        assert!(answer.starts_with("HTTP/1.1 401"), "{path}: {answer}");
        assert!(!answer.contains("SOUL"), "{path}: {answer}");
    }
    assert!(get("/enter?token=0000", address).starts_with("HTTP/1.1 401"));
    let browser = Browser::new(&page);
    // The link is used up.
    let link = page.ready["link"].as_str().unwrap().split_once(address).unwrap().1;
    assert!(get(link, address).starts_with("HTTP/1.1 401"));
    for path in VIEWS {
        let answer = browser.get(path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        let head = answer.split_once("\r\n\r\n").unwrap().0;
        for header in [
            "content-security-policy: default-src 'none'",
            "frame-ancestors 'none'",
            "x-frame-options: DENY",
            "x-content-type-options: nosniff",
            "cache-control: no-store",
        ] {
            assert!(head.contains(header), "{path}: {header}: {head}");
        }
        assert!(!head.contains("unsafe-inline") || path == "/report", "{head}");
        // Another name for this machine, as someone who has a name server may give it.
        let rebound = page.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: evil.example\r\nCookie: {}\r\nConnection: close\r\n\r\n",
            browser.cookie
        ));
        assert!(rebound.starts_with("HTTP/1.1 421"), "{path}: {rebound}");
    }
    assert!(browser.get("/none").starts_with("HTTP/1.1 404"));
}

#[test]
fn nothing_is_changed_from_another_page() {
    let place = Place::new();
    let id = place.ask("/w/conf", 5);
    let page = Proxy::start(&place.scene, "serve", &[]);
    let browser = Browser::new(&page);
    let path = format!("/requests/{id}");
    let shown = browser.page(&path);
    let (form, action) = (hidden(&shown, "form"), hidden(&shown, "action"));
    let fields = [("form", form.as_str()), ("action", &action), ("answer", "once")];
    for headers in [
        String::new(),
        "Origin: null\r\n".to_owned(),
        "Origin: https://evil.example\r\n".to_owned(),
        format!("Origin: http://{}\r\nSec-Fetch-Site: cross-site\r\n", browser.address),
    ] {
        let answer = browser.post(&path, &fields, &headers);
        assert!(answer.starts_with("HTTP/1.1 403"), "{headers}: {answer}");
    }
    // Without what the form holds, too.
    let answer = browser.send(&path, &[("action", &action), ("answer", "once")]);
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    // A confirmation that was never asked for.
    let answer = browser.send("/confirm", &[("form", &form), ("word", "0123")]);
    assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
    let pending = place.scene.json(0, "s", &["approvals", "list"]);
    assert_eq!(pending["pending"].as_array().unwrap().len(), 1, "{pending}");
}

#[test]
fn a_request_is_shown_confirmed_and_answered_once() {
    let place = Place::new();
    let id = place.ask("/w/<script>alert(1)</script>", 5);
    let page = Proxy::start(&place.scene, "serve", &[]);
    let browser = Browser::new(&page);
    assert!(browser.page("/").contains("Agents ask for 1 thing"));
    let list = browser.page("/requests");
    assert!(list.contains(&format!("/requests/{id}")), "{list}");
    let path = format!("/requests/{id}");
    let shown = browser.page(&path);
    assert!(
        shown.contains("&lt;script&gt;alert(1)") && !shown.contains("<script>alert"),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}') && shown.contains("\\u{1b}"), "{shown}");
    let (form, action) = (hidden(&shown, "form"), hidden(&shown, "action"));
    // Another action than the one that was looked at.
    let other = "0".repeat(64);
    let answer = browser.send(&path, &[("form", &form), ("action", &other), ("answer", "once")]);
    assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
    let sure = browser.send(&path, &[("form", &form), ("action", &action), ("answer", "once")]);
    assert!(sure.contains("Are you sure?") && sure.contains(&action[..8]), "{sure}");
    let word = hidden(&sure, "word");
    let pending = place.scene.json(0, "s", &["approvals", "list"]);
    assert_eq!(
        pending["pending"].as_array().unwrap().len(),
        1,
        "only a question so far: {pending}"
    );
    let done = browser.send("/confirm", &[("form", &form), ("word", &word)]);
    assert!(done.starts_with("HTTP/1.1 200") && done.contains("Approved"), "{done}");
    let list = place.scene.json(0, "s", &["approvals", "list"]);
    assert_eq!(list["pending"].as_array().unwrap().len(), 0, "{list}");
    assert_eq!(list["approvals"][0]["request"], id.as_str(), "{list}");
    // Once.
    let again = browser.send("/confirm", &[("form", &form), ("word", &word)]);
    assert!(again.starts_with("HTTP/1.1 409"), "{again}");
}

#[test]
fn a_proposal_is_shown_harmless_and_installed() {
    let scene = scene();
    let staged = scene.at("ws/.soulguard/staging/SOUL.md");
    let hostile = "# My Soul\n<script>alert(1)</script> \u{202e}evil\u{1b}[2J\n";
    fs::write(&staged, hostile).unwrap();
    let page = Proxy::start(&scene, "serve", &[]);
    let browser = Browser::new(&page);
    let shown = browser.page("/proposals");
    assert!(shown.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{shown}");
    for bad in ["<script>alert", "\u{202e}", "\u{1b}"] {
        assert!(!shown.contains(bad), "{bad:?}: {shown}");
    }
    let fields = ["form", "workspace", "hash"].map(|name| (name, hidden(&shown, name)));
    let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
    // Changed after it was looked at.
    fs::write(&staged, "# Other\n").unwrap();
    let answer = browser.send("/proposals", &fields);
    assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
    fs::write(&staged, hostile).unwrap();
    let sure = browser.send("/proposals", &fields);
    let word = hidden(&sure, "word");
    // Changed before it was confirmed.
    fs::write(&staged, "# Other\n").unwrap();
    let answer = browser.send("/confirm", &[fields[0], ("word", &word)]);
    assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
    assert_eq!(fs::read_to_string(scene.at("ws/SOUL.md")).unwrap(), "# My Soul\n");
    fs::write(&staged, hostile).unwrap();
    let sure = browser.send("/proposals", &fields);
    let word = hidden(&sure, "word");
    let done = browser.send("/confirm", &[fields[0], ("word", &word)]);
    assert!(done.starts_with("HTTP/1.1 200"), "{done}");
    assert_eq!(fs::read_to_string(scene.at("ws/SOUL.md")).unwrap(), hostile);
    // A folder that is not known is not touched.
    let wrong = [fields[0], ("workspace", "/"), fields[2]];
    assert!(browser.send("/proposals", &wrong).starts_with("HTTP/1.1 409"));
}

#[test]
fn a_policy_is_edited_and_signed_as_from_a_window() {
    let scene = scene();
    let page = Proxy::start(&scene, "serve", &[]);
    let browser = Browser::new(&page);
    let shown = browser.page("/policy");
    assert!(shown.contains(">unsigned</strong>"), "{shown}");
    let (form, workspace) = (hidden(&shown, "form"), hidden(&shown, "workspace"));
    let before = fs::read_to_string(scene.at("ws/LocalGPT.md")).unwrap();
    let text = format!("{before}\n- Never push to main.\n");
    let fields = |before: &str| {
        [
            ("form", form.clone()),
            ("workspace", workspace.clone()),
            ("before", before.to_owned()),
            ("text", text.clone()),
        ]
    };
    let send = |path: &str, fields: &[(&str, String)]| {
        let fields: Vec<(&str, &str)> =
            fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        browser.send(path, &fields)
    };
    let confirm =
        |sure: &str| send("/confirm", &[("form", form.clone()), ("word", hidden(sure, "word"))]);
    // What is not the text of now is no ground to write on.
    let answer = confirm(&send("/policy", &fields("something else")));
    assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
    assert_eq!(fs::read_to_string(scene.at("ws/LocalGPT.md")).unwrap(), before);
    let sure = send("/policy", &fields(&before));
    assert!(sure.contains("Never push to main."), "{sure}");
    let done = confirm(&sure);
    assert!(done.starts_with("HTTP/1.1 200"), "{done}");
    assert_eq!(fs::read_to_string(scene.at("ws/LocalGPT.md")).unwrap(), text);
    scene.expect(0, "s", &["md", "verify", "-w", "ws"]);
    assert!(browser.page("/policy").contains("class=\"good\">valid"));
    let manifest = fs::read_to_string(scene.at("ws/.localgpt_manifest.json")).unwrap();
    assert!(manifest.contains("\"gui\""), "{manifest}");
}

#[test]
fn a_timeline_goes_back_by_pages_and_tells_of_news() {
    let scene = scene();
    drop(scene.grow("s", 120));
    let page = Proxy::start(&scene, "serve", &[]);
    let browser = Browser::new(&page);
    let first = browser.page("/timeline");
    let rows = |text: &str| text.matches("data-index=").count();
    assert_eq!(rows(&first), 50, "{first}");
    let older = first.split_once("href=\"/timeline?below=").unwrap().1;
    let older = older.split_once('"').unwrap().0;
    let second = browser.page(&format!("/timeline?below={older}"));
    assert_eq!(rows(&second), 50, "{second}");
    assert!(!second.contains(&format!("data-index=\"{older}\"")), "{second}");
    let calls = browser.page("/timeline?kind=ToolCall");
    assert!(calls.contains("ToolCall") && !calls.contains(">SessionStart</span>"), "{calls}");
    assert!(browser.get("/timeline?kind=Nonsense").starts_with("HTTP/1.1 409"));
    assert!(browser.get("/timeline?severity=nonsense").starts_with("HTTP/1.1 409"));
    // A record in full.
    let id = calls.split_once("href=\"/record/").unwrap().1.split_once('"').unwrap().0.to_owned();
    let record = browser.page(&format!("/record/{id}"));
    assert!(record.contains(&id), "{record}");
    // News.
    let mut stream = TcpStream::connect(&browser.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let Browser { address, cookie, .. } = &browser;
    let request = format!("GET /live HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut heard = String::new();
    let mut hear = |until: &dyn Fn(&str) -> bool| {
        let started = Instant::now();
        while !until(&heard) {
            assert!(started.elapsed() < Duration::from_secs(20), "{heard}");
            let mut piece = [0; 1024];
            let read = stream.read(&mut piece).unwrap();
            heard.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        heard.matches("data: ").count()
    };
    let before = hear(&|text| text.contains("data: 1"));
    scene.expect(
        0,
        "s",
        &["evidence", "append", "--type", "ToolCall", "--principal", "TOOL", "--inline", "{}"],
    );
    assert!(hear(&|text| text.matches("data: ").count() > before) > before);
}

#[test]
fn it_is_not_served_to_others_or_to_the_agent() {
    let scene = scene();
    let ran = scene.expect(1, "s", &["serve", "--listen", "0.0.0.0:0"]);
    assert!(ran.stderr.contains("other machines") && is_harmless(&ran.stderr), "{ran:?}");
    let mut confined = scene.command("s", &["serve"]);
    let ran = confined.env("WARDKEEP_CONFINED", "1").output().unwrap();
    assert!(!ran.status.success(), "{ran:?}");
}
