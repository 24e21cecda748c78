//! OpenClaw and OpenCode are told to load our plugin, and the plugin's own tests.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use wardkeep_agents::install::{InstallError, Restored, Surroundings, examine, plan, uninstall};
use wardkeep_agents::{Agent, Crossing, Event, Kind};

const BOTH: [Agent; 2] = [Agent::OpenClaw, Agent::OpenCode];

struct Home {
    folder: tempfile::TempDir,
    around: Surroundings,
}

impl Home {
    fn new(machine: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("state/wardkeep")).unwrap();
        fs::create_dir(at("home")).unwrap();
        let around = Surroundings {
            home: at("home"),
            machine: machine.then(|| at("etc")),
            program: PathBuf::from("/opt/a \"b\"/wardkeep"),
            state: at("state/wardkeep"),
        };
        Self { folder, around }
    }

    fn file(&self, agent: Agent) -> PathBuf {
        let name = match agent {
            Agent::OpenClaw => ".openclaw/openclaw.json",
            _ => ".config/opencode/opencode.json",
        };
        self.around.home.join(name)
    }

    fn write(&self, agent: Agent, text: &str) -> PathBuf {
        let file = self.file(agent);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    fn install(&self, agent: Agent) -> Result<(), InstallError> {
        plan(agent, &self.around)?.apply(&self.around)
    }

    fn plugin(&self, agent: Agent) -> PathBuf {
        self.around.state.join("plugins").join(agent.name())
    }
}

/// Settings as people have them; those that are marked, only OpenClaw takes.
fn configs() -> Vec<(&'static str, bool, String)> {
    let huge: Vec<String> = (0..20_000).map(|n| format!("\"m{n}\": {{\"x\": [{n}]}}")).collect();
    let text = str::to_owned;
    vec![
        ("empty", false, text("")),
        ("blank", false, text("\n\n  ")),
        ("an empty object", false, text("{}")),
        ("one line", false, text(r#"{"model":"a/b","permission":{"bash":"allow"}}"#)),
        ("pretty", false, text("{\n  \"model\": \"a/b\",\n  \"x\": {\n    \"y\": 1\n  }\n}\n")),
        ("tabs", false, text("{\n\t\"model\": \"a/b\"\n}\n")),
        ("windows", false, text("{\r\n  \"model\": \"a/b\"\r\n}\r\n")),
        ("no end of line", false, text("{\n  \"a\": 1\n}")),
        (
            "comments",
            false,
            text("// mine\n{\n  /* why */ \"a\": 1, // because\n  \"b\": [2,]\n}\n"),
        ),
        ("commas at ends", false, text("{\n  \"a\": [1, 2,],\n}\n")),
        (
            "own plugins",
            false,
            text(
                r#"{"plugin":["mine", ["other", {"a": 1}]],"plugins":{"load":{"paths":["~/p"]}}}"#,
            ),
        ),
        (
            "own plugins, pretty",
            false,
            text(
                "{\n  \"plugin\": [\n    \"mine\" // good\n  ],\n  \"plugins\": {\n    \"entries\": {\n      \"mine\": { \"enabled\": false }\n    }\n  }\n}\n",
            ),
        ),
        (
            "empty lists",
            false,
            text("{\"plugin\": [], \"plugins\": {\"load\": {\"paths\": []}, \"entries\": {}}}\n"),
        ),
        (
            "those who may",
            false,
            text("{\"plugins\": {\"allow\": [\"mine\"], \"deny\": [\"bad\"], \"enabled\": true}}"),
        ),
        (
            "numbers",
            false,
            text("{\"a\": 1.0, \"b\": 1e400, \"c\": -0, \"d\": 12345678901234567890123}"),
        ),
        ("odd strings", false, text("{\"\\u0061\": \"\\ud83d\\ude00 \\/ \u{202e}\"}")),
        ("letters", false, text("{\"name\": \"Grüße, 世界\"}\n")),
        ("huge", false, format!("{{{}}}", huge.join(",\n"))),
        ("deep", false, format!("{{\"a\": {}1{}}}", "[".repeat(60), "]".repeat(60))),
        ("blank lines", false, text("\n\n{\n\n  \"a\": 1\n\n\n}\n\n")),
        (
            "as JavaScript",
            true,
            text(
                "// mine\n{\n  gateway: { mode: 'local', },\n  $x: +.5, y: 0xff, z: Infinity,\n  'a b': 'it\\'s \"fine\"',\n}\n",
            ),
        ),
        (
            "plugins as JavaScript",
            true,
            text("{plugins: {load: {paths: ['~/p',]}, allow: ['mine']}, security: {audit: {}}}"),
        ),
        (
            "own install policy",
            true,
            text(
                "{security: {installPolicy: {enabled: true, exec: {source: 'exec', command: '/mine'}}}}",
            ),
        ),
    ]
}

#[test]
fn the_bytes_of_before_come_back() {
    for (name, five, before) in configs() {
        for agent in BOTH {
            if five && agent == Agent::OpenCode {
                continue;
            }
            let home = Home::new(false);
            let file = home.write(agent, &before);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
            home.install(agent).unwrap_or_else(|error| panic!("{name} {agent}: {error}"));
            let after = fs::read_to_string(&file).unwrap();
            assert_ne!(after, before, "{name}");
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640, "{name}");
            for comment in ["// mine", "/* why */", "// because", "// good"] {
                assert_eq!(before.contains(comment), after.contains(comment), "{name}");
            }
            assert!(plan(agent, &home.around).unwrap().is_done(), "{name} {agent}: again, nothing");
            assert_eq!(examine(agent, &home.around), [], "{name}");
            home.install(agent).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), after, "{name}");
            let restored = uninstall(agent, &home.around.state).unwrap();
            assert!(restored.iter().all(|it| matches!(it, Restored::Exactly(_))), "{restored:?}");
            assert_eq!(fs::read_to_string(&file).unwrap(), before, "{name} {agent}");
            assert!(!home.plugin(agent).exists(), "{name}");
        }
    }
}

#[test]
fn nothing_of_the_user_is_lost() {
    for (name, five, before) in configs() {
        let Ok(Value::Object(own)) = serde_json::from_str(&before) else { continue };
        assert!(!five);
        let home = Home::new(false);
        let file = home.write(Agent::OpenClaw, &before);
        home.install(Agent::OpenClaw).unwrap();
        let all: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        for (key, value) in own.iter().filter(|(key, _)| *key != "plugins") {
            assert_eq!(&all[key], value, "{name}");
        }
        let pointers = ["/plugins/load/paths/0", "/plugins/allow/0", "/plugins/entries/mine"];
        let own = Value::Object(own);
        for pointer in pointers {
            if let Some(value) = own.pointer(pointer) {
                assert_eq!(all.pointer(pointer), Some(value), "{name}");
            }
        }
        if own.pointer("/plugins/allow").is_some() {
            assert_eq!(all["plugins"]["allow"], json!(["mine", "wardkeep"]));
        }
    }
}

#[test]
fn the_entries_are_what_the_agents_read() {
    let home = Home::new(false);
    let state = home.around.state.to_str().unwrap();
    home.install(Agent::OpenClaw).unwrap();
    let read = |path: &Path| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap();
    let folder = home.plugin(Agent::OpenClaw);
    let said = read(&home.file(Agent::OpenClaw));
    assert_eq!(said["plugins"]["load"]["paths"], json!([folder]));
    let entry = json!({"enabled": true, "hooks": {"allowConversationAccess": true}});
    assert_eq!(said["plugins"]["entries"]["wardkeep"], entry);
    let policy = &said["security"]["installPolicy"];
    assert_eq!(policy["exec"]["command"], "/opt/a \"b\"/wardkeep");
    let words = json!(["--state-dir", state, "hook", "openclaw", "install_policy"]);
    assert_eq!((&policy["enabled"], &policy["exec"]["args"]), (&json!(true), &words));
    let command = fs::read_to_string(folder.join("command.js")).unwrap();
    let list = command.split_once("export default ").unwrap().1.trim_end().trim_end_matches(';');
    let words: Vec<String> = serde_json::from_str(list).unwrap();
    assert_eq!(words, ["/opt/a \"b\"/wardkeep", "--state-dir", state]);
    let manifest = read(&folder.join("openclaw.plugin.json"));
    assert_eq!(manifest["contracts"]["trustedToolPolicies"], json!(["wardkeep"]));
    let package = read(&folder.join("package.json"));
    let entry = package["openclaw"]["extensions"][0].as_str().unwrap();
    assert!(folder.join(entry).is_file() && folder.join("ask.js").is_file());

    home.install(Agent::OpenCode).unwrap();
    let said = read(&home.file(Agent::OpenCode));
    let entry = home.plugin(Agent::OpenCode).join("index.js");
    assert_eq!(said["plugin"], json!([entry]));
    assert!(entry.is_file());
}

#[test]
fn on_a_whole_machine_users_can_read_it() {
    let home = Home::new(true);
    home.install(Agent::OpenCode).unwrap();
    let etc = home.around.machine.clone().unwrap();
    let entry = etc.join("wardkeep/plugins/opencode/index.js");
    let said = fs::read_to_string(etc.join("opencode/opencode.json")).unwrap();
    assert!(said.contains(entry.to_str().unwrap()), "{said}");
    let command = entry.with_file_name("command.js");
    assert!(!fs::read_to_string(&command).unwrap().contains("state"), "each user has their own");
    for file in [&entry, &command, &etc.join("opencode/opencode.json")] {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o644);
    }
    uninstall(Agent::OpenCode, &home.around.state).unwrap();
    assert!(!etc.exists(), "where there was nothing, nothing is left");
    // OpenClaw has no such place.
    home.install(Agent::OpenClaw).unwrap();
    assert!(home.file(Agent::OpenClaw).is_file() && !etc.exists());
}

#[test]
fn what_is_not_understood_is_never_rewritten() {
    let both = [
        "{",
        "[]",
        "null",
        "\"x\"",
        "{} {}",
        "{\"a\": 1 \"b\": 2}",
        "not json at all",
        "{\"plugin\": {}, \"plugins\": []}",
        "{\"plugin\": \"x\", \"plugins\": \"x\"}",
        "{\"plugin\": [], \"plugin\": [], \"plugins\": {}, \"plugins\": {}}",
    ];
    let claw = [
        "{plugins: {load: []}}",
        "{plugins: {load: {paths: {}}}}",
        "{plugins: {entries: []}}",
        "{plugins: {enabled: false}}",
        "{plugins: {deny: ['wardkeep']}}",
        "{plugins: {allow: {}}}",
        "{security: []}",
        "{plugins: {entries: {wardkeep: 1, 'wardkeep': 2}}}",
        "{a b: 1}",
    ];
    let code = ["{'plugin': []}", "{plugin: []}"];
    let cases = both.iter().flat_map(|text| BOTH.map(|agent| (agent, *text)));
    let cases = cases
        .chain(claw.map(|text| (Agent::OpenClaw, text)))
        .chain(code.map(|text| (Agent::OpenCode, text)));
    for (agent, text) in cases {
        let home = Home::new(false);
        let file = home.write(agent, text);
        let error = home.install(agent).expect_err(text);
        assert!(matches!(error, InstallError::Unusable { .. }), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        assert!(!home.plugin(agent).exists(), "{text}");
    }
    for text in
        ["[".repeat(1 << 20), format!("//\r{}", "[".repeat(1 << 20)), "['\"',".repeat(1 << 18)]
    {
        let home = Home::new(false);
        home.write(Agent::OpenClaw, &text);
        assert!(home.install(Agent::OpenClaw).is_err());
    }
}

#[test]
fn what_has_changed_since_is_found_and_kept() {
    for agent in BOTH {
        let home = Home::new(false);
        let file = home.write(agent, "{\n  \"a\": 1 // one\n}\n");
        home.install(agent).unwrap();
        for name in ["ask.js", "command.js"] {
            let path = home.plugin(agent).join(name);
            let good = fs::read(&path).unwrap();
            fs::write(&path, "export default [\"true\"];\n").unwrap();
            let found = examine(agent, &home.around);
            assert!(found.len() == 1 && found[0].what.contains(name), "{found:?}");
            fs::remove_file(&path).unwrap();
            assert_eq!(examine(agent, &home.around).len(), 1);
            fs::write(&path, good).unwrap();
        }
        assert_eq!(examine(agent, &home.around), []);
        let text = fs::read_to_string(&file).unwrap().replace("\"a\": 1", "\"a\": 2");
        fs::write(&file, &text).unwrap();
        fs::write(home.plugin(agent).join("ask.js"), "changed").unwrap();
        let restored = uninstall(agent, &home.around.state).unwrap();
        assert!(restored.contains(&Restored::InPart(file.clone())), "{restored:?}");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("\"a\": 2") && text.contains("// one"), "{text}");
        assert!(!text.contains("wardkeep"), "{text}");
        assert!(!home.plugin(agent).join("ask.js").exists());
    }
    let home = Home::new(false);
    let file = home.write(Agent::OpenClaw, "{}");
    home.install(Agent::OpenClaw).unwrap();
    let good = fs::read_to_string(&file).unwrap();
    let off = [
        ("\"enabled\": true", "\"enabled\": false"),
        ("\"allowConversationAccess\": true", "\"allowConversationAccess\": false"),
        ("\"plugins\": {", "\"plugins\": { \"enabled\": false,"),
        ("\"plugins\": {", "\"plugins\": { \"deny\": [\"wardkeep\"],"),
        ("\"plugins\": {", "\"plugins\": { \"allow\": [],"),
    ];
    for (from, to) in off {
        assert!(good.contains(from), "{good}");
        fs::write(&file, good.replacen(from, to, 1)).unwrap();
        assert!(!examine(Agent::OpenClaw, &home.around).is_empty(), "{to}");
    }
}

#[test]
fn a_newer_place_takes_that_of_an_older_one() {
    for agent in BOTH {
        let mut home = Home::new(false);
        let file = home.write(agent, "{}");
        home.install(agent).unwrap();
        let old = home.plugin(agent).to_str().unwrap().to_owned();
        home.around.state = home.folder.path().join("other/wardkeep");
        home.install(agent).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains(&old), "{text}");
        assert!(text.contains(home.plugin(agent).to_str().unwrap()), "{text}");
    }
}

#[test]
fn links_stay_links_and_the_commented_file_is_preferred() {
    let home = Home::new(false);
    let real = home.folder.path().join("dotfiles.json");
    fs::write(&real, "{\"a\": 1}").unwrap();
    let link = home.file(Agent::OpenClaw);
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink(&real, &link).unwrap();
    home.install(Agent::OpenClaw).unwrap();
    assert_eq!(fs::read_link(&link).unwrap(), real);
    uninstall(Agent::OpenClaw, &home.around.state).unwrap();
    assert_eq!(fs::read_to_string(&real).unwrap(), "{\"a\": 1}");

    let plain = home.write(Agent::OpenCode, "{}");
    let commented = plain.with_extension("jsonc");
    fs::write(&commented, "{} // mine\n").unwrap();
    home.install(Agent::OpenCode).unwrap();
    assert_eq!(fs::read_to_string(&plain).unwrap(), "{}");
    assert!(fs::read_to_string(&commented).unwrap().contains("index.js"));
}

#[test]
fn openclaw_asks_before_it_installs() {
    let asked = json!({
        "protocolVersion": 1, "openclawVersion": "x", "targetType": "skill", "targetName": "helper",
        "sourcePath": "/tmp/a", "sourcePathKind": "directory", "origin": {},
        "request": {"kind": "skill-install", "mode": "install", "requestedSpecifier": "helper@1"},
    });
    let read = |event: &Value| {
        Agent::OpenClaw.read(Some("install_policy"), event.to_string().as_bytes(), None)
    };
    let event: Event = read(&asked).unwrap();
    assert_eq!((event.kind, event.crossings.len()), (Kind::ConfigChange, 1));
    let crossing = format!("{:?}", event.crossings[0]);
    assert!(crossing.contains("helper@1"), "{crossing}");
    let Crossing::Install { text, folder, .. } = &event.crossings[0] else { panic!("{crossing}") };
    // Where it lies is no part of what is approved.
    assert!(!text.contains("/tmp/a"), "{text}");
    assert_eq!(folder.as_deref(), Some(Path::new("/tmp/a")));
    for (key, value) in
        [("protocolVersion", json!(2)), ("targetName", json!(7)), ("request", json!(null))]
    {
        let mut odd = asked.clone();
        odd[key] = value;
        let error = read(&odd).unwrap_err();
        let output = Agent::OpenClaw.refuse(Some("install_policy"), &error.to_string());
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&said["protocolVersion"], &said["decision"]), (&json!(1), &json!("block")));
        assert!(said["reason"].as_str().unwrap().starts_with("denied by wardkeep"), "{said}");
    }
}

/// The plugins' own tests, which need a Node that takes types off by itself.
#[test]
fn the_plugins_fail_closed() {
    let strips = |program: &Path| {
        let said = Command::new(program).args(["-p", "process.features.typescript"]).output();
        said.is_ok_and(|said| said.stdout.starts_with(b"strip"))
    };
    let cached = std::env::var_os("HOME")
        .map(|home| Path::new(&home).join(".cache/wardkeep-agents/node/node_modules/.bin/node"));
    let node = [Some(PathBuf::from("node")), cached].into_iter().flatten().find(|it| strips(it));
    let Some(node) = node else {
        skip("Node 22.18 or newer", "the plugins of OpenClaw and OpenCode");
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/tests");
    let mut words = vec!["--test".into()];
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    words.extend(files.filter(|path| path.to_string_lossy().ends_with(".test.js")));
    assert_eq!(words.len(), 4, "{words:?}");
    let ran = Command::new(node).args(words).env_remove("NODE_OPTIONS").output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}

/// Says that a test did not run, in the place where `scripts/test` collects such lines.
fn skip(what: &str, test: &str) {
    use std::io::Write as _;
    let line = format!("skipped: needs {what} ({test})\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os("WARDKEEP_SKIP_LOG") {
        let file = fs::OpenOptions::new().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}
