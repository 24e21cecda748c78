//! `wardkeep serve` by the real binary, over plain TCP: what a browser may do, and what others may not.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::approvals::Place;
use crate::shared::is_harmless;
use crate::state::{Proxy, Scene, send};

/// A browser that holds the cookie.
pub(crate) struct Browser {
    pub(crate) address: String,
    pub(crate) cookie: String,
}

impl Browser {
    pub(crate) fn new(page: &Proxy<'_>) -> Self {
        Self::at(&page.ready)
    }

    /// Of a page that said this when it was ready.
    pub(crate) fn at(ready: &Value) -> Self {
        let address = ready["address"].as_str().unwrap().to_owned();
        let mut browser = Self { address, cookie: String::new() };
        let link = ready["link"].as_str().unwrap();
        let path = link.split_once(&browser.address).unwrap().1;
        let answer = browser.get(path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let line = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        assert!(line.contains("HttpOnly") && line.contains("SameSite=Strict"), "{line}");
        assert!(answer.contains("referrer-policy: no-referrer"), "{answer}");
        browser.cookie = line.split(';').next().unwrap().to_owned();
        browser
    }

    fn get(&self, path: &str) -> String {
        let Self { address, cookie, .. } = self;
        send(
            address,
            &format!(
                "GET {path} HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
            ),
        )
    }

    pub(crate) fn page(&self, path: &str) -> String {
        let answer = self.get(path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    fn post(&self, path: &str, fields: &[(&str, &str)], headers: &str) -> String {
        let Self { address, cookie, .. } = self;
        let pairs = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value)));
        let body = pairs.collect::<Vec<_>>().join("&");
        send(
            address,
            &format!(
                "POST {path} HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\n{headers}\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            ),
        )
    }

    /// As the page's own forms do.
    pub(crate) fn send(&self, path: &str, fields: &[(&str, &str)]) -> String {
        self.post(path, fields, &format!("Origin: http://{}\r\n", self.address))
    }
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The value of a hidden field.
pub(crate) fn hidden(page: &str, name: &str) -> String {
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

const VIEWS: [&str; 9] = [
    "/",
    "/timeline",
    "/requests",
    "/proposals",
    "/policy",
    "/skills",
    "/models",
    "/evidence",
    "/report",
];

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
    assert!(get("/enter/0000", address).starts_with("HTTP/1.1 401"));
    assert!(get("/", address).contains("<code>wardkeep serve</code>"));
    let link = page.ready["link"].as_str().unwrap();
    let word = link.rsplit_once('/').unwrap().1;
    assert_eq!(word.len(), 32, "192 bits: {link}");
    // The longest address leaves room for what stands before the link on its line of 80.
    let longest = "127.254.254.254:65535".len() - address.len() + link.len();
    assert!("Open once: ".len() + longest <= 80, "{link}");
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
            // Not `no-referrer`: with that, browsers send forms with the origin `null`.
            "referrer-policy: same-origin",
        ] {
            assert!(head.contains(header), "{path}: {header}: {head}");
        }
        assert!(!head.contains("unsafe-inline") || path == "/report", "{head}");
        assert!(answer.contains("<a href=\"/\">Back to the page</a>") == (path == "/report"));
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
    let [form, workspace, hash] = ["form", "workspace", "hash"].map(|name| hidden(&shown, name));
    let fields = [
        ("form", form.as_str()),
        ("workspace", &workspace),
        ("hash", &hash),
        ("answer", "approve"),
    ];
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
    let wrong = [fields[0], ("workspace", "/"), fields[2], fields[3]];
    assert!(browser.send("/proposals", &wrong).starts_with("HTTP/1.1 409"));
    // What is refused is dropped, and the file stays.
    fs::write(&staged, "# Other\n").unwrap();
    let hash = hidden(&browser.page("/proposals"), "hash");
    let fields = [fields[0], fields[1], ("hash", hash.as_str()), ("answer", "refuse")];
    let word = hidden(&browser.send("/proposals", &fields), "word");
    fs::write(&staged, "# Another\n").unwrap();
    let answer = browser.send("/confirm", &[fields[0], ("word", &word)]);
    assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
    fs::write(&staged, "# Other\n").unwrap();
    let word = hidden(&browser.send("/proposals", &fields), "word");
    let done = browser.send("/confirm", &[fields[0], ("word", &word)]);
    assert!(done.starts_with("HTTP/1.1 200"), "{done}");
    assert_eq!(fs::read_to_string(scene.at("ws/SOUL.md")).unwrap(), hostile);
    assert_eq!(fs::read_to_string(&staged).unwrap(), hostile);
}

#[test]
fn the_evidence_is_shown_and_verified_only_when_asked() {
    let scene = scene();
    drop(scene.grow("s", 30));
    let page = Proxy::start(&scene, "serve", &[]);
    let browser = Browser::new(&page);
    let shown = browser.page("/evidence");
    assert!(shown.contains("Verify all of it now") && !shown.contains("PASS"), "{shown}");
    let form = hidden(&shown, "form");
    assert!(browser.send("/evidence", &[]).starts_with("HTTP/1.1 403"));
    let done = browser.send("/evidence", &[("form", &form)]);
    assert!(done.contains("PASS") && done.contains("chain"), "{done}");
    assert!(browser.page("/evidence").contains("PASS"));
    // Changed behind its back: it says so when it is asked again.
    let segment = scene.at("s/journal/00000001.jsonl");
    let text = fs::read_to_string(&segment).unwrap();
    fs::write(&segment, text.replacen("ToolCall", "ToolCalm", 1)).unwrap();
    let done = browser.send("/evidence", &[("form", &form)]);
    assert!(done.contains("FAIL"), "{done}");
}

#[test]
fn skills_are_shown_as_approved_or_changed() {
    let scene = scene();
    fs::create_dir_all(scene.at("skills/sort-words")).unwrap();
    let manual = "---\nname: sort-words\ndescription: Sorts words.\n---\nSort the words.\n";
    fs::write(scene.at("skills/sort-words/SKILL.md"), manual).unwrap();
    scene.expect(0, "s", &["skill", "approve", "--yes", "skills/sort-words"]);
    fs::create_dir_all(scene.at("agent/skills")).unwrap();
    let place = scene.at("agent/skills/sort-words");
    let install = ["skill", "install", "--yes", "skills/sort-words", place.to_str().unwrap()];
    scene.expect(0, "s", &install);
    let page = Proxy::start(&scene, "serve", &[]);
    let browser = Browser::new(&page);
    let shown = browser.page("/skills");
    assert!(shown.contains("sort-words") && shown.contains(">approved</span>"), "{shown}");
    fs::write(place.join("SKILL.md"), format!("{manual}<b>More.</b>\n")).unwrap();
    let shown = browser.page("/skills");
    assert!(shown.contains(">changed</span>"), "{shown}");
    // The grade knows it, too.
    assert!(browser.page("/").contains("not as it was pinned"));
}

#[test]
fn a_grade_is_shown_with_what_would_raise_it() {
    let scene = scene();
    let page = Proxy::start(&scene, "serve", &[]);
    let browser = Browser::new(&page);
    let shown = browser.page("/");
    for part in ["of 100 points", "wardkeep install AGENT", "wardkeep md sign -w"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // What drifted is broken, and keeps the mark down.
    fs::write(scene.at("ws/SOUL.md"), "# Evil\n").unwrap();
    let shown = browser.page("/");
    assert!(
        shown.contains("1 file is not as you approved") && shown.contains("wardkeep sync"),
        "{shown}"
    );
}

#[test]
fn records_are_found_by_what_they_say() {
    let scene = scene();
    drop(scene.grow("s", 60));
    let event = ["evidence", "append", "--type", "FileWrite", "--principal", "TOOL", "--inline"];
    scene.expect(0, "s", &[&event[..], &["{\"subject\":\"/w/Needle.md\"}"]].concat());
    let page = Proxy::start(&scene, "serve", &[]);
    let browser = Browser::new(&page);
    let rows = |path: &str| browser.page(path).matches("data-index=").count();
    assert_eq!(rows("/timeline?text=nEEDLE.md"), 1);
    assert_eq!(rows("/timeline?text=nowhere-at-all"), 0);
    assert_eq!(rows("/timeline?kind=FileWrite&text=needle"), 1);
    assert_eq!(rows("/timeline?kind=ToolCall&text=needle"), 0);
    assert!(browser.get("/timeline?verdict=nonsense").starts_with("HTTP/1.1 409"));
    // What was asked for stays in the links, and stays text.
    let shown = browser.page("/timeline?text=%22%3E%3Cscript%3Ealert(1)%3C/script%3E");
    assert!(!shown.contains("<script>alert") && shown.contains("&lt;script&gt;"), "{shown}");
}

#[test]
fn odd_requests_are_answered_plainly() {
    let scene = scene();
    let page = Proxy::start(&scene, "serve", &[]);
    let address = page.ready["address"].as_str().unwrap().to_owned();
    let link = page.ready["link"].as_str().unwrap().split_once(&address).unwrap().1;
    // Who only asks whether the link is there does not use it up.
    let head =
        page.send(&format!("HEAD {link} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"));
    assert!(head.starts_with("HTTP/1.1 405") && !head.contains("set-cookie"), "{head}");
    let browser = Browser::new(&page);
    for path in [
        "//",
        "/../",
        "/timeline/../policy",
        "/record/..%2f..%2fetc%2fpasswd",
        "/record/%00",
        "/record/%3Cscript%3E",
        "/requests/%0d%0aSet-Cookie:%20a=b",
        "/Timeline",
        "/page.css/x",
        "/record/",
    ] {
        let answer = browser.get(path);
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
        let head = answer.split_once("\r\n\r\n").unwrap().0.to_lowercase();
        assert!(!head.contains("set-cookie") && head.contains("content-security-policy"), "{head}");
        assert!(!answer.contains("<script>") && !answer.contains("root:"), "{path}: {answer}");
    }
    for path in ["/timeline?below=x", "/timeline?kind=%ff%fe"] {
        let answer = browser.get(path);
        assert!(answer.starts_with("HTTP/1.1 4"), "{path}: {answer}");
    }
    // Methods that are none of a page's.
    for method in ["PUT", "DELETE", "OPTIONS", "TRACE"] {
        let Browser { address, cookie, .. } = &browser;
        let answer = page.send(&format!(
            "{method} /policy HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
        ));
        assert!(answer.starts_with("HTTP/1.1 403"), "{method}: {answer}");
    }
    // A form that is longer than forms are, and one that says it is and never comes.
    let long = "x".repeat(300 << 10);
    let answer = browser.send("/policy", &[("form", "x"), ("text", &long)]);
    assert!(answer.starts_with("HTTP/1.1 413") || answer.is_empty(), "{answer:.200}");
    let Browser { address, cookie, .. } = &browser;
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
    let slow = format!(
        "POST /policy HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\nOrigin: http://{address}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nform="
    );
    stream.write_all(slow.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    // Another page of this machine that loads something of it.
    let foreign = page.send(&format!(
        "GET /timeline/rows HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\nSec-Fetch-Site: same-site\r\n\
         Sec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: script\r\nConnection: close\r\n\r\n"
    ));
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
}

#[test]
fn live_views_are_bounded() {
    let scene = scene();
    let page = Proxy::start(&scene, "serve", &[]);
    let browser = Browser::new(&page);
    let Browser { address, cookie, .. } = &browser;
    let mut open = Vec::new();
    let mut statuses = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let request = format!("GET /live HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut line = [0; 12];
        stream.read_exact(&mut line).unwrap();
        statuses.push(String::from_utf8_lossy(&line).into_owned());
        open.push(stream);
    }
    let count = |status: &str| statuses.iter().filter(|one| one.ends_with(status)).count();
    assert_eq!((count("200"), count("503")), (16, 4), "{statuses:?}");
    // The rest of the page goes on.
    assert!(browser.page("/").contains("Protection"));
}

#[test]
fn a_policy_is_edited_and_signed_as_from_a_window() {
    let scene = scene();
    let page = Proxy::start(&scene, "serve", &[]);
    let browser = Browser::new(&page);
    let shown = browser.page("/policy");
    assert!(shown.contains(">unsigned</strong>"), "{shown}");
    assert!(shown.contains("read it, then sign it below"), "{shown}");
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
