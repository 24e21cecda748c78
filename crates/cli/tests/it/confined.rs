//! `wardkeep run` and `wardkeep sandbox why`, with real programs.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::shared::{BINARY, Ran, command, skip};

pub(crate) struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    /// A home with a key in it, a workspace and a state directory; nothing where programs cannot be
    /// confined.
    pub(crate) fn new() -> Option<Self> {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["home/.ssh", "work/src", "state"] {
            fs::create_dir_all(scene.at(name)).unwrap();
        }
        fs::write(scene.at("home/.ssh/id"), "a key\n").unwrap();
        fs::write(scene.at("work/.env"), "TOKEN=x\n").unwrap();
        let ran = scene.run(&["true"]);
        if ran.code == 125 && ran.stderr.contains("layer") {
            skip("a kernel that lets programs be confined", &ran.stderr);
            return None;
        }
        assert_eq!(ran.code, 0, "{ran:?}");
        Some(scene)
    }

    pub(crate) fn at(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn wardkeep(&self, arguments: &[&str]) -> Ran {
        let mut command = command(BINARY, &self.at("work"));
        command.env("HOME", self.at("home")).arg("--state-dir").arg(self.at("state"));
        command.args(arguments).output().unwrap().into()
    }

    fn run(&self, program: &[&str]) -> Ran {
        self.wardkeep(&[&["run", "--no-daemon", "--"][..], program].concat())
    }

    fn shell(&self, script: &str) -> Ran {
        self.run(&["sh", "-c", script])
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.wardkeep(&[&["--json"][..], arguments].concat());
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
    }
}

#[test]
fn a_program_is_kept_to_its_workspace() {
    let Some(scene) = Scene::new() else { return };
    let ran = scene.shell("echo out; echo made > src/new; exit 7");
    assert_eq!((ran.code, ran.stdout.as_str()), (7, "out\n"), "{ran:?}");
    assert_eq!(fs::read_to_string(scene.at("work/src/new")).unwrap(), "made\n");
    let home = scene.at("home");
    let script = format!("cat {0}/.ssh/id; echo x > {0}/left; cat .env", home.display());
    let ran = scene.shell(&script);
    assert!(!ran.stdout.contains("key") && !ran.stdout.contains("TOKEN"), "{ran:?}");
    assert!(!home.join("left").exists());
}

/// Folders that have not changed are not listed again; what came into them since is held all the same.
#[test]
fn what_came_after_a_folder_was_remembered_is_held() {
    let Some(scene) = Scene::new() else { return };
    fs::create_dir_all(scene.at("work/deep/er/est")).unwrap();
    fs::write(scene.at("work/deep/er/est/plain"), "x").unwrap();
    // Only what has been as it is for two seconds is remembered.
    std::thread::sleep(std::time::Duration::from_millis(2200));
    let kept = || {
        let listings = fs::read_dir(scene.at("state/listings")).ok()?;
        let files: Vec<_> = listings.map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        Some((files[0].clone(), fs::read(&files[0]).unwrap()))
    };
    assert_eq!(scene.shell("true").code, 0);
    let Some((file, bytes)) = kept() else {
        return skip("a file system that tells of every change in a folder", "nothing is kept");
    };
    assert!(bytes.windows(6).any(|part| part == b"plain\0"));
    assert_eq!(scene.shell("true").code, 0);
    assert_eq!(kept().unwrap().1, bytes, "nothing has changed");
    fs::write(scene.at("work/deep/er/est/.env"), "TOKEN=new\n").unwrap();
    fs::write(scene.at("work/deep/er/AGENTS.md"), "mine\n").unwrap();
    let script =
        "cat deep/er/est/.env; echo bad > deep/er/AGENTS.md; echo more > deep/er/est/plain";
    let ran = scene.shell(script);
    assert!(!ran.stdout.contains("TOKEN"), "{ran:?}");
    assert_eq!(fs::read_to_string(scene.at("work/deep/er/AGENTS.md")).unwrap(), "mine\n");
    assert_eq!(fs::read_to_string(scene.at("work/deep/er/est/plain")).unwrap(), "more\n");
    // What is damaged, or is written by others, is not believed and does no harm.
    for damage in [&b"wk-list1"[..], b"", &bytes[..bytes.len() - 1]] {
        fs::write(&file, damage).unwrap();
        let ran = scene.shell(script);
        assert!(!ran.stdout.contains("TOKEN"), "{ran:?}");
        assert_eq!(fs::read_to_string(scene.at("work/deep/er/AGENTS.md")).unwrap(), "mine\n");
    }
}

#[test]
fn a_hook_inside_reaches_the_monitor() {
    let Some(scene) = Scene::new() else { return };
    let started = scene.wardkeep(&["daemon"]);
    assert_eq!(started.code, 0, "{started:?}");
    let event = serde_json::json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash",
        "tool_input": {"command": "true"}, "cwd": scene.at("work"),
    });
    let state = scene.at("state");
    let hook =
        format!("printf %s '{event}' | {BINARY} --state-dir {} hook claude-code", state.display());
    let ran = scene.shell(&hook);
    scene.wardkeep(&["daemon", "stop"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!ran.stdout.contains("deny") && !ran.stderr.contains("denied"), "{ran:?}");
}

/// Without its plugin an agent would go on, and ask nobody.
#[test]
fn a_plugin_is_there_inside_and_nothing_else_of_the_state() {
    let Some(scene) = Scene::new() else { return };
    fs::create_dir_all(scene.at("state/plugins/openclaw")).unwrap();
    fs::write(scene.at("state/plugins/openclaw/index.ts"), "ours\n").unwrap();
    let state = scene.at("state");
    let script = format!(
        "cd {}; cat plugins/openclaw/index.ts; ls -A; echo x > plugins/openclaw/index.ts",
        state.display()
    );
    let ran = scene.shell(&script);
    assert_eq!(ran.stdout, "ours\nplugins\n", "{ran:?}");
    assert_ne!(ran.code, 0, "{ran:?}");
    let plugin = state.join("plugins/openclaw/index.ts");
    assert_eq!(fs::read_to_string(&plugin).unwrap(), "ours\n");
    let answer = scene.json(&["sandbox", "why", plugin.to_str().unwrap(), state.to_str().unwrap()]);
    assert_eq!(answer["paths"][0]["read"], true, "{answer}");
    assert_eq!(answer["paths"][0]["write"], false, "{answer}");
    assert_eq!(answer["paths"][1]["read"], false, "{answer}");
}

#[test]
fn what_was_refused_is_told_and_can_be_asked_for() {
    let Some(scene) = Scene::new() else { return };
    let ran = scene
        .shell("mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; echo y > AGENTS.md; true");
    assert!(ran.stderr.contains("refused: ") && ran.stderr.contains("AGENTS.md"), "{ran:?}");
    assert!(!scene.at("work/AGENTS.md").exists());
    let answer = scene.json(&["sandbox", "why"]);
    let refused = answer["last"]["refused"].as_array().unwrap();
    let told = |name: &str| refused.iter().any(|line| line.as_str().unwrap().contains(name));
    assert!(told("AGENTS.md"), "{answer}");
    assert_eq!(answer["last"]["workspace"], real(&scene.at("work")));
    // Asking changes nothing.
    assert_eq!(scene.json(&["sandbox", "why"]), answer);
}

#[test]
fn each_path_and_host_is_explained_as_it_is_held() {
    let Some(scene) = Scene::new() else { return };
    let key = scene.at("home/.ssh/id");
    let key = key.to_str().unwrap();
    let asked = ["sandbox", "why", "src/new", "AGENTS.md", key, "--host", "example.org:8443"];
    let answer = scene.json(&asked);
    let paths = answer["paths"].as_array().unwrap();
    let can =
        |at: usize| (paths[at]["read"].as_bool().unwrap(), paths[at]["write"].as_bool().unwrap());
    assert_eq!([can(0), can(1), can(2)], [(true, true), (true, false), (false, false)], "{answer}");
    assert_eq!(answer["hosts"][0]["allow"], "--allow example.org:8443");
    // What it says holds, and so does what it proposes.
    assert_eq!(scene.shell("echo x > src/new").code, 0);
    assert_ne!(scene.shell("echo x > AGENTS.md").code, 0);
    assert_ne!(scene.shell(&format!("cat {key}")).code, 0);
    let allow: Vec<&str> = paths[2]["allow"].as_str().unwrap().split(' ').collect();
    let ran = scene.wardkeep(&[&["run", "--no-daemon"], &allow[..], &["--", "cat", key]].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "a key\n"), "{ran:?}");
    let ran = scene.wardkeep(&["sandbox", "why", "--host", "http://exa mple/"]);
    assert!(ran.code != 0 && ran.stderr.contains("names no host"), "{ran:?}");
}

#[test]
fn the_protect_tier_of_the_workspace_holds_inside() {
    let Some(scene) = Scene::new() else { return };
    fs::create_dir(scene.at("work/notes")).unwrap();
    fs::write(scene.at("work/notes/oath.txt"), "mine\n").unwrap();
    let tiers = r#"{"version":1,"files":{"notes/oath.txt":"protect","diary.txt":"protect","free.txt":"watch"}}"#;
    fs::write(scene.at("work/soulguard.json"), tiers).unwrap();
    let script = "echo x > notes/oath.txt; echo x > diary.txt; rm -rf notes; mv notes n2; \
                  echo x > free.txt; echo x > notes/other.txt; true";
    let ran = scene.shell(script);
    assert_eq!(fs::read_to_string(scene.at("work/notes/oath.txt")).unwrap(), "mine\n", "{ran:?}");
    assert!(!scene.at("work/diary.txt").exists(), "{ran:?}");
    assert!(
        scene.at("work/free.txt").exists() && scene.at("work/notes/other.txt").exists(),
        "{ran:?}"
    );
    fs::write(scene.at("work/soulguard.json"), "{").unwrap();
    let ran = scene.shell("true");
    assert!(ran.code == 125 && ran.stderr.contains("soulguard.json` cannot be used"), "{ran:?}");
}

#[test]
fn a_run_that_learns_proposes_what_was_not_shown_and_no_secrets() {
    let Some(scene) = Scene::new() else { return };
    fs::create_dir_all(scene.at("home/data/deep")).unwrap();
    fs::write(scene.at("home/data/deep/table.csv"), "row of the table\n").unwrap();
    let home = scene.at("home");
    let script =
        format!("cat {0}/data/deep/table.csv {0}/.ssh/id {0}/nothing; true", home.display());
    let ran = scene.wardkeep(&["run", "--no-daemon", "--learn", "--", "sh", "-c", &script]);
    let table = format!("--read {}/data/deep/table.csv", home.display());
    assert!(ran.code == 0 && ran.stderr.contains(&table), "{ran:?}");
    assert!(ran.stderr.contains("not proposed because it may hold secrets"), "{ran:?}");
    assert!(!ran.stderr.contains(&format!("--read {}/.ssh", home.display())), "{ran:?}");
    // The confinement was in force all the while.
    let told = |what: &str| ran.stdout.contains(what);
    assert!(!told("row of the table") && !told("key"), "{ran:?}");
}

#[test]
fn denials_are_alerts_while_it_runs() {
    let Some(scene) = Scene::new() else { return };
    scene.shell("echo x > AGENTS.md; true");
    let answer = scene.json(&["notifications"]);
    assert!(answer.to_string().contains("AGENTS.md"), "{answer}");
}

/// The session of a proxy begins with the first connection, and where it may not, nothing leaves.
#[test]
fn a_proxy_whose_session_may_not_begin_lets_nothing_out() {
    let Some(scene) = Scene::new() else { return };
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = server.local_addr().unwrap().to_string();
    let script = format!(
        "python3 -c 'import urllib.request as u;u.build_opener(u.ProxyHandler({{\"http\":\"http://127.0.0.1:3128\"}}))\
         .open(\"http://{target}/x\",timeout=9)' 2> /dev/null; exit 7"
    );
    let run = |script: &str| scene.wardkeep(&["run", "--allow", &target, "--", "sh", "-c", script]);
    let begun = || {
        let text = |entry: std::io::Result<fs::DirEntry>| fs::read_to_string(entry.unwrap().path());
        let all = fs::read_dir(scene.at("state/journal")).unwrap().filter_map(|one| text(one).ok());
        all.map(|text| text.matches("\"SessionStart\"").count()).sum::<usize>()
    };
    let ran = run("exit 7");
    assert_eq!((ran.code, begun()), (7, 0), "a program that calls nobody has no session: {ran:?}");
    let answering = server.try_clone().unwrap();
    let answering = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut called, _) = answering.accept().unwrap();
        let _ = called.read(&mut [0; 4096]);
        called.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    });
    let ran = run(&script);
    assert_eq!((ran.code, begun()), (7, 1), "{ran:?}");
    answering.join().unwrap();
    server.set_nonblocking(true).unwrap();
    let work = scene.at("work");
    assert_eq!(scene.wardkeep(&["init", work.to_str().unwrap()]).code, 0);
    let rule = "@id(\"nobody\")\nforbid (principal, action == Action::\"start\", resource == \
                Surface::\"SandboxCompliance\") when { context.subject == \"egress\" };\n";
    fs::write(scene.at("state/rules.cedar"), rule).unwrap();
    let signed = scene.wardkeep(&["config", "sign", "--yes"]);
    assert_eq!(signed.code, 0, "{signed:?}");
    let ran = run(&script);
    scene.wardkeep(&["daemon", "stop"]);
    assert_eq!(ran.code, 7, "{ran:?}");
    assert!(ran.stderr.contains("no request could leave"), "{ran:?}");
    assert!(ran.stderr.contains("nobody"), "{ran:?}");
    assert!(server.accept().is_err(), "nobody has called");
}

#[test]
fn programs_trust_the_authority_of_a_run_that_looks_into_tls() {
    let Some(scene) = Scene::new() else { return };
    let script = "cat \"$SSL_CERT_FILE\" | tail -n 12; echo \"at $NODE_EXTRA_CA_CERTS\"";
    let arguments =
        ["run", "--allow", "a.example", "--inspect", "a.example", "--", "sh", "-c", script];
    let ran = scene.wardkeep(&arguments);
    scene.wardkeep(&["daemon", "stop"]);
    if ran.stderr.contains("ca-certificates") {
        return skip("the package ca-certificates", "programs_trust_the_authority");
    }
    assert!(ran.code == 0 && ran.stdout.contains("-----END CERTIFICATE-----"), "{ran:?}");
    let file = ran.stdout.lines().find_map(|line| line.strip_prefix("at ")).unwrap();
    // Gone with the run.
    assert!(file.ends_with(".pem") && !Path::new(file).exists(), "{ran:?}");
}

/// What of an agent's own folder it runs or obeys later, by the profile; and what it has to keep.
const OWN: &[(&str, &str, &[&str], &[&str])] = &[
    (
        "claude-code",
        ".claude",
        &[
            "local/claude",
            "shell-snapshots/s.sh",
            "session-env/s.sh",
            "statusline.sh",
            "workflows/w.js",
            "scheduled-tasks/t/SKILL.md",
            "anything-new/run.sh",
        ],
        &["projects/p/s.jsonl", "todos/t.json", "history.jsonl", ".credentials.json"],
    ),
    (
        "gemini-cli",
        ".gemini",
        &[
            "policies/p.toml",
            "skills/s/SKILL.md",
            "agents/a.md",
            "hooks/h.sh",
            "trustedFolders.json",
            "system.md",
            "tmp/bin/rg",
            "history/p/git/config",
        ],
        &["tmp/p/chats/c.json", "history/p/x", "oauth_creds.json"],
    ),
    (
        "codex",
        ".codex",
        &[
            "skills/s/SKILL.md",
            "plugins/p/x",
            "agents/a.toml",
            "automations/a.toml",
            "bin/codex",
            "shell_snapshots/s.sh",
        ],
        &["sessions/2026/s.jsonl", "history.jsonl", "auth.json"],
    ),
    (
        "openclaw",
        ".openclaw",
        &[
            "exec-approvals.json",
            "skills/s/SKILL.md",
            "bin/x",
            "tools/x",
            "plugins/p/x",
            "devices/paired.json",
            "state/openclaw.sqlite",
            "agents/main/agent/codex-home/skills/x",
        ],
        &["agents/main/sessions/s.jsonl", "logs/l.log", "credentials/c.json"],
    ),
    ("opencode", ".local/share/opencode", &["bin/rg"], &["storage/s.json", "auth.json"]),
];

fn folder_of(name: &str) -> String {
    let above = Path::new(name).parent().unwrap().display().to_string();
    if above.is_empty() { ".".to_owned() } else { above }
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Once with nothing there, once with all of it there.
#[test]
fn an_agent_does_not_change_what_it_runs_later() {
    let Some(scene) = Scene::new() else { return };
    for (profile, own, later, kept) in OWN {
        let folder = scene.at("home").join(own);
        fs::create_dir_all(&folder).unwrap();
        for is_there in [false, true] {
            for name in later.iter().filter(|_| is_there) {
                put(&folder.join(name), "good\n");
            }
            // A login is there already, or is made outside.
            for name in ["auth.json", ".credentials.json", "oauth_creds.json", "credentials/c.json"]
            {
                if kept.contains(&name) {
                    put(&folder.join(name), "{}\n");
                }
            }
            let mut script = format!("cd {}; ls -A >/dev/null || echo unread\n", folder.display());
            for name in *later {
                let (above, first) = (folder_of(name), name.split('/').next().unwrap());
                script += &format!(
                    "mkdir -p {above}; echo evil > {name}; rm -f {name}; echo evil > {name}; mv {first} was; \
                     mkdir -p {above}; echo evil > {name}\n"
                );
            }
            for name in *kept {
                let above = folder_of(name);
                script += &format!("mkdir -p {above} && echo more >> {name} || echo lost {name}\n");
            }
            let start = ["run", "--no-daemon", "--profile", profile, "--", "sh", "-c", &script];
            let ran = scene.wardkeep(&start);
            assert_eq!(ran.stdout, "", "{profile}: {ran:?}");
            for name in *later {
                let found = fs::read_to_string(folder.join(name)).unwrap_or_default();
                let expected = if is_there { "good\n" } else { "" };
                assert_eq!(found, expected, "{profile}: {name}: {ran:?}");
            }
            for name in *kept {
                let found = fs::read_to_string(folder.join(name)).unwrap_or_default();
                assert!(found.ends_with("more\n"), "{profile}: {name}: {found} {ran:?}");
            }
        }
    }
    // Whoever names the whole of it means the whole of it.
    let own = scene.at("home/.claude");
    let script = format!("echo mine > {}/statusline.sh", own.display());
    let write = own.to_str().unwrap();
    let profile = ["run", "--no-daemon", "--profile", "claude-code", "--write", write];
    let ran = scene.wardkeep(&[&profile[..], &["--", "sh", "-c", &script]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(fs::read_to_string(own.join("statusline.sh")).unwrap(), "mine\n");
}

/// A look makes nothing in the home, and a link in an agent's folder shows nothing else of it.
#[test]
fn what_an_agent_keeps_is_made_when_it_runs_and_not_before() {
    let Some(scene) = Scene::new() else { return };
    fs::create_dir_all(scene.at("home/.claude")).unwrap();
    fs::create_dir_all(scene.at("home/letters")).unwrap();
    fs::write(scene.at("home/letters/id"), "a key\n").unwrap();
    std::os::unix::fs::symlink(scene.at("home/letters"), scene.at("home/.claude/keys")).unwrap();
    let made = || scene.at("home/.claude/projects").exists();
    scene.wardkeep(&["run", "--dry-run", "--profile", "claude-code", "--", "true"]);
    scene.wardkeep(&["sandbox", "why", "--profile", "claude-code", "src"]);
    assert!(!made());
    let script = format!("cat {}/.claude/keys/id", scene.at("home").display());
    let start = ["run", "--no-daemon", "--profile", "claude-code", "--", "sh", "-c", &script];
    let ran = scene.wardkeep(&start);
    assert!(made() && !ran.stdout.contains("key"), "{ran:?}");
}

/// The copies of private files that lie in the state directory.
fn copies(scene: &Scene) -> Vec<std::path::PathBuf> {
    let Ok(entries) = fs::read_dir(scene.at("state/copies")) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_run_that_is_killed_leaves_no_copy_for_long() {
    use std::io::{BufRead as _, BufReader, Read as _};
    let Some(scene) = Scene::new() else { return };
    fs::create_dir(scene.at("tmp")).unwrap();
    put(&scene.at("home/.claude.json"), r#"{"oauthAccount":"CANARY"}"#);
    let line = ["run", "--no-daemon", "--net", "none", "--profile", "claude-code", "--"];
    let start = |program: &[&str]| {
        let mut command = command(BINARY, &scene.at("work"));
        command.env("HOME", scene.at("home")).env("TMPDIR", scene.at("tmp"));
        command.arg("--state-dir").arg(scene.at("state")).args(line).args(program);
        command.stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    let mut child = start(&["sh", "-c", "cat ~/.claude.json; echo; exec sleep 600"]);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    output.read_line(&mut first).unwrap();
    assert!(first.contains("CANARY"), "{first}");
    let living = copies(&scene);
    assert_eq!(living.len(), 1, "{living:?}");
    // Another run leaves it to the one that lives.
    assert!(start(&["true"]).wait().unwrap().success());
    assert_eq!(copies(&scene), living);
    child.kill().unwrap();
    child.wait().unwrap();
    // Nobody inside is left when this ends.
    output.read_to_string(&mut first).unwrap();
    // What someone put there is not followed.
    let link = scene.at("state/copies/copy-00000000000a");
    std::os::unix::fs::symlink(scene.at("home/.ssh/id"), &link).unwrap();
    assert!(start(&["true"]).wait().unwrap().success());
    assert_eq!(copies(&scene), [link]);
    assert!(scene.at("home/.ssh/id").exists());
    assert_eq!(fs::read_dir(scene.at("tmp")).unwrap().count(), 0);
}

#[test]
fn json_tells_of_a_run_on_standard_error_and_the_output_is_the_programs() {
    let Some(scene) = Scene::new() else { return };
    let script = "echo out; echo x > .envrc; git init -q new; printf '{\"forged\":1' >&2; exit 3";
    let ran = scene.wardkeep(&["--json", "run", "--no-daemon", "--", "sh", "-c", script]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, "out\n"), "{ran:?}");
    let last = ran.stderr.lines().last().unwrap();
    let told: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(
        (&told["command"], &told["ok"], &told["exit"]),
        (&"run".into(), &false.into(), &3.into())
    );
    assert_eq!((&told["code"], &told["timed_out"]), (&3.into(), &false.into()));
    let denied = told["denials"].as_array().unwrap();
    assert!(denied.iter().any(|one| one["path"].as_str().unwrap().ends_with(".envrc")), "{told}");
    let made = told["repositories"].as_array().unwrap();
    assert!(made.iter().any(|one| one["path"].as_str().unwrap().contains("new")), "{told}");
    // Where nothing is started, nobody else has the output.
    let ran = scene.wardkeep(&["--json", "run", "--no-daemon", "--", "no-such-program"]);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    assert!(ran.code == 127 && told["error"]["message"].is_string(), "{ran:?}");
}

#[test]
fn many_denials_hide_no_other() {
    let Some(scene) = Scene::new() else { return };
    let script = "i=0; while [ $i -lt 300 ]; do mkdir d$i; echo x > d$i/CLAUDE.md; i=$((i+1)); done 2>/dev/null
        echo x > .mcp.json; true";
    let ran = scene.shell(script);
    assert!(ran.stderr.contains("work/.mcp.json (") && ran.stderr.contains(" more"), "{ran:?}");
    let answer = scene.json(&["notifications"]);
    assert!(answer.to_string().contains(".mcp.json"), "{answer}");
}

#[test]
fn new_repositories_are_counted() {
    let Some(scene) = Scene::new() else { return };
    let script = "i=0; while [ $i -lt 30 ]; do mkdir -p r$i/.git; i=$((i+1)); done; true";
    let ran = scene.shell(script);
    assert_eq!(ran.stderr.matches("a repository was made").count(), 20, "{ran:?}");
    assert!(ran.stderr.contains("and 10 more repositories were made"), "{ran:?}");
}

#[test]
fn a_limit_that_is_not_kept_is_told() {
    let Some(scene) = Scene::new() else { return };
    let ran = scene.wardkeep(&["run", "--no-daemon", "--memory", "99999999999999", "--", "true"]);
    assert!(ran.code == 125 && ran.stderr.contains("is no limit of memory"), "{ran:?}");
    let ran = scene.wardkeep(&["run", "--no-daemon", "--processes", "30", "--", "true"]);
    let told = ran.stderr.contains("the number of processes is not limited");
    if !rustix::process::geteuid().is_root() {
        assert!(ran.code == 0 && !told, "{ran:?}");
    } else if !told {
        skip("root without a control group of its own", &ran.stderr);
    }
    assert!(ran.code == 0, "{ran:?}");
    let ran = scene.wardkeep(&["run", "--no-daemon", "--", "true"]);
    assert!(!ran.stderr.contains("is not limited"), "{ran:?}");
}

#[test]
fn a_share_of_the_processors_that_is_not_kept_is_told() {
    let Some(scene) = Scene::new() else { return };
    let ran = scene.wardkeep(&["run", "--no-daemon", "--cpus", "0.5", "--", "true"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = ran.stderr.contains("the share of the processors is not limited");
    if !told {
        skip("a machine without a control group that limits processors", &ran.stderr);
    }
    for wrong in ["0", "-1", "nan", "much", "1e3"] {
        let argument = format!("--cpus={wrong}");
        let ran = scene.wardkeep(&["run", "--no-daemon", &argument, "--", "true"]);
        assert_eq!(ran.code, 125, "{ran:?}");
    }
    let answer = scene.json(&["run", "--dry-run", "--cpus", "1.50", "--", "true"]);
    assert_eq!(answer["confinement"]["limits"]["cpus"], "1.5", "{answer}");
}

#[test]
fn a_seccomp_profile_holds_besides() {
    let Some(scene) = Scene::new() else { return };
    let profile = scene.at("profile.json");
    let text = r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
        {"names":["mkdir","mkdirat"],"action":"SCMP_ACT_ERRNO","errnoRet":28}]}"#;
    fs::write(&profile, text).unwrap();
    let path = profile.to_str().unwrap();
    let run = |file: &str, script: &str| {
        scene.wardkeep(&["run", "--no-daemon", "--seccomp", file, "--", "sh", "-c", script])
    };
    let ran = run(path, "mkdir made");
    assert!(ran.code == 1 && ran.stderr.contains("No space left"), "{ran:?}");
    assert!(!scene.at("work/made").exists());
    let ran = run("../profile.json", "echo x > plain; echo x > .mcp.json");
    assert!(ran.stderr.contains(".mcp.json") && scene.at("work/plain").exists(), "{ran:?}");
    let arguments = ["run", "--dry-run", "--seccomp", path, "--", "true"];
    let answer = scene.json(&arguments);
    let known = &answer["confinement"]["seccomp_profile"];
    assert_eq!(known["path"], path, "{answer}");
    assert_eq!(known["sha256"].as_str().map(str::len), Some(64), "{answer}");
    assert!(scene.wardkeep(&arguments).stdout.contains("SHA-256"));
    // Where the program may write it, what it says is the program's.
    fs::copy(&profile, scene.at("work/profile.json")).unwrap();
    let ran = run("profile.json", "touch started");
    assert!(ran.code == 125 && ran.stderr.contains("could change"), "{ran:?}");
    for (text, named) in [
        (r#"{"defaultAction":"SCMP_ACT_NOTIFY"}"#, "SCMP_ACT_NOTIFY"),
        (r#"{"defaultAction":"SCMP_ACT_ERRNO"}"#, "`execve`"),
        ("", "EOF"),
    ] {
        fs::write(&profile, text).unwrap();
        let ran = run(path, "touch started");
        assert!(ran.code == 125 && ran.stderr.contains(named), "{ran:?}");
    }
    let ran = run("absent.json", "touch started");
    assert!(ran.code == 125 && ran.stderr.contains("is not there"), "{ran:?}");
    assert!(!scene.at("work/started").exists());
}

/// Other exit codes may be the program's.
#[test]
fn a_wrong_command_line_of_run_has_its_exit_code() {
    let Some(scene) = Scene::new() else { return };
    for wrong in [
        &["run", "--timeout", "never", "--", "true"][..],
        &["run"],
        &["--no-color", "run", "--memory", "much", "--", "true"],
    ] {
        let ran = scene.wardkeep(wrong);
        assert_eq!(ran.code, 125, "{wrong:?}: {ran:?}");
    }
    assert_eq!(scene.wardkeep(&["run", "--help"]).code, 0);
    assert_eq!(scene.wardkeep(&["scan", "--no-such-option"]).code, 2);
}

#[test]
fn an_option_that_is_none_is_no_program() {
    let Some(scene) = Scene::new() else { return };
    let ran = scene.wardkeep(&["run", "--no-daemon", "--askk", "--", "true"]);
    assert!(ran.code == 125 && ran.stderr.contains("`--askk` is no option"), "{ran:?}");
}

#[test]
fn a_dry_run_is_told_in_words_and_a_program_that_is_absent_is_asked_after() {
    let Some(scene) = Scene::new() else { return };
    let arguments = ["run", "--dry-run", "--allow", "a.example", "--", "sh", "-c", "true; x"];
    let ran = scene.wardkeep(&arguments);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!ran.stdout.contains(['{', '"', '[']), "{}", ran.stdout);
    let work = scene.at("work").canonicalize().unwrap();
    for (label, value) in [
        ("command", "sh -c 'true; x'"),
        ("workspace", work.to_str().unwrap()),
        ("network", "only by a proxy that decides and records each request"),
        ("can write", work.to_str().unwrap()),
    ] {
        let line = ran.stdout.lines().find(|line| line.trim_start().starts_with(label));
        assert!(line.is_some_and(|line| line.ends_with(value)), "{label}: {}", ran.stdout);
    }
    let answer = scene.json(&arguments);
    assert_eq!(answer["confinement"]["network"], "proxy", "{answer}");
    let ran = scene.run(&["no-such-program"]);
    assert!(ran.code == 127 && ran.stderr.contains("hint: is it installed?"), "{ran:?}");
}

#[test]
fn without_hosts_there_is_nothing_to_look_into() {
    let Some(scene) = Scene::new() else { return };
    let ran = scene.wardkeep(&["run", "--no-daemon", "--inspect", "a.example", "--", "true"]);
    assert!(ran.code == 125 && ran.stderr.contains("nothing to look into"), "{ran:?}");
}

/// Starts something with `--ask` in a terminal of its own.
fn in_terminal(scene: &Scene, inside: &str) -> std::process::Child {
    let state = scene.at("state");
    let line = format!("{BINARY} --state-dir {} run --ask -- bash -c '{inside}'", state.display());
    let mut terminal = command("/usr/bin/script", &scene.at("work"));
    terminal.env("HOME", scene.at("home")).args(["-qec", &line, "/dev/null"]);
    terminal.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    terminal.spawn().unwrap()
}

/// Waits for the question about `subject`.
fn asked(scene: &Scene, subject: &str) -> Value {
    for _ in 0..300 {
        let list = scene.json(&["approvals", "list"]);
        let one = list["pending"].as_array().and_then(|all| all.first().cloned());
        if let Some(one) = one.filter(|one| one["subject"].to_string().contains(subject)) {
            return one;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("the owner was not asked");
}

/// Runs something with `--ask` in a terminal of its own, and answers the question about `subject`.
fn answered(scene: &Scene, inside: &str, subject: &str, answer: &str) -> String {
    let running = in_terminal(scene, inside);
    let asked = asked(scene, subject);
    let request = asked["request"].as_str().unwrap();
    let answered = match answer {
        "approve" => scene.wardkeep(&["approvals", "approve", request, "--yes"]),
        _ => scene.wardkeep(&["approvals", "deny", request]),
    };
    assert_eq!(answered.code, 0, "{answered:?}");
    let ran = running.wait_with_output().unwrap();
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

#[test]
fn where_the_program_has_the_terminal_the_owner_is_asked_in_another() {
    let Some(scene) = Scene::new() else { return };
    if !Path::new("/usr/bin/script").exists() || !Path::new("/bin/bash").exists() {
        skip("script and bash", "there is none");
        return;
    }
    assert_eq!(scene.wardkeep(&["init", "."]).code, 0);
    let inside = r#"exec 3<>/dev/tcp/127.0.0.1/3128; printf "CONNECT nowhere.invalid:443 HTTP/1.1\r\nHost: nowhere.invalid:443\r\n\r\n" >&3; head -n 20 <&3"#;
    for (answer, expected) in [("approve", "was not found"), ("deny", "owner")] {
        let shown = answered(&scene, inside, "nowhere.invalid:443", answer);
        assert!(shown.contains("403") && shown.contains(expected), "{answer}: {shown}");
    }
    // And about a protected name that it wants to make.
    for (answer, name) in [("approve", ".envrc"), ("deny", ".mcp.json")] {
        let inside = format!("echo x > {name} && echo made it");
        let shown = answered(&scene, &inside, name, answer);
        let made = scene.at(&format!("work/{name}")).exists();
        assert_eq!(made, answer == "approve", "{shown}");
        assert_eq!(shown.contains("made it"), made, "{shown}");
    }
    // A question that is open when the run ends.
    let inside = "(echo x > .npmrc) & for i in $(seq 900); do [ -e go ] && break; sleep .1; done";
    let running = in_terminal(&scene, inside);
    asked(&scene, ".npmrc");
    fs::write(scene.at("work/go"), "").unwrap();
    let ran = running.wait_with_output().unwrap();
    assert!(ran.status.success() && !scene.at("work/.npmrc").exists(), "{ran:?}");
    let log = scene.json(&["log", "--limit", "100"]).to_string();
    assert!(log.contains("confinement-asked") && log.contains("sandbox-ask-name"), "{log}");
    assert!(log.contains("unanswered") || log.contains("\"gone\""), "{log}");
    scene.wardkeep(&["daemon", "stop"]);
}

#[test]
fn nobody_is_asked_where_there_is_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let mut command = command("setsid", folder.path());
    let ran: Ran = command
        .args([BINARY, "egress", "--listen", "127.0.0.1:0", "--ask", "--state-dir"])
        .arg(&state)
        .output()
        .unwrap()
        .into();
    assert!(ran.code != 0 && ran.stderr.contains("there is no terminal"), "{ran:?}");
}

#[test]
fn without_a_run_there_is_nothing_to_tell() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let state = state.to_str().unwrap();
    assert_eq!(crate::shared::run(folder.path(), &["init", ".", "--state-dir", state]).code, 0);
    let ran = crate::shared::run(folder.path(), &["sandbox", "why", "--state-dir", state]);
    assert!(ran.stdout.contains("No program has run"), "{ran:?}");
}

fn real(path: &Path) -> Value {
    path.canonicalize().unwrap().to_str().unwrap().into()
}

#[test]
fn the_model_is_reached_through_a_proxy_inside_and_in_no_other_way() {
    use wardkeep_fake_model::{Log, Script, Server};
    let Some(scene) = Scene::new() else { return };
    if !Path::new("/bin/bash").exists() {
        skip("bash", "there is none");
        return;
    }
    let log = scene.at("model.jsonl");
    let mut script = Script::default();
    script.say(["The key is AKIA", "Q7RZJ4MWN2XK5TLV", " and no other."].concat());
    let server = Server::bind_strict(0, script, Log::create(&log).unwrap()).unwrap();
    let upstream = format!("http://127.0.0.1:{}", server.port());
    std::thread::spawn(move || server.serve());
    // As an agent would, with what the environment says.
    let ask = r#"
        place=${ANTHROPIC_BASE_URL#http://}; address=${place%%/*}; path=/${place#*/}
        body='{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
        exec 3<>"/dev/tcp/${address%:*}/${address#*:}"
        printf 'POST %s/v1/messages HTTP/1.1\r\nhost: %s\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s' \
            "$path" "$address" "${#body}" "$body" >&3
        cat <&3
        exec 4<>"/dev/tcp/${address%:*}/${address#*:}"
        printf 'POST /anthropic/v1/files HTTP/1.1\r\nhost: %s\r\nconnection: close\r\ncontent-length: 1\r\n\r\nx' "$address" >&4
        cat <&4
        (exec 5<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && echo 'the model itself is reached'
        true
    "#;
    let port = upstream.rsplit(':').next().unwrap();
    let ran = scene.wardkeep(&[
        "run",
        "--with-proxy",
        "--upstream",
        &upstream,
        "--",
        "/bin/bash",
        "-c",
        ask,
        "sh",
        port,
    ]);
    let _ = scene.wardkeep(&["daemon", "stop"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("HTTP/1.1 200") && ran.stdout.contains("[withheld]"), "{ran:?}");
    assert!(ran.stdout.contains("HTTP/1.1 403"), "{ran:?}");
    assert!(!ran.stdout.contains("the model itself"), "{ran:?}");
    assert!(ran.stderr.contains("withheld 1 places"), "{ran:?}");
    let told = fs::read_to_string(&log).unwrap();
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.contains("SECURITY REMINDER"), "{told}");
}

#[test]
fn a_file_that_is_not_shown_is_asked_about() {
    let Some(scene) = Scene::new() else { return };
    if !Path::new("/usr/bin/script").exists() || !Path::new("/bin/bash").exists() {
        skip("script and bash", "there is none");
        return;
    }
    assert_eq!(scene.wardkeep(&["init", "."]).code, 0);
    let home = scene.at("home");
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    for name in ["notes.txt", "other.txt", ".ssh/id_ed25519"] {
        std::fs::write(home.join(name), format!("what {name} holds\n")).unwrap();
    }
    // Keys are not asked about, neither before nor after something that is.
    let inside =
        |name: &str| format!("cat ~/.ssh/id_ed25519 ~/{name} && echo got it; cat ~/{name}");
    let link = "ln -s ~/notes.txt readme; cat readme ~/.ssh/id_ed25519; echo done";
    let shown = answered(&scene, link, "home/notes.txt", "approve");
    assert!(shown.contains("what notes.txt holds") && shown.contains("done"), "{shown}");
    assert!(!shown.contains("id_ed25519 holds"), "{shown}");
    assert!(shown.contains("not shown: read") && shown.contains("--read"), "{shown}");
    let shown = answered(&scene, &inside("other.txt"), "home/other.txt", "deny");
    assert!(shown.contains("No such file") && !shown.contains("holds\r\n"), "{shown}");
    let log = scene.json(&["log", "--limit", "200"]).to_string();
    for word in ["confinement-asked", "sandbox-ask-read", "\"unshown\"", "confinement-denied"] {
        assert!(log.contains(word), "{word}: {log}");
    }
    assert!(!log.contains("what notes.txt holds"), "{log}");
    scene.wardkeep(&["daemon", "stop"]);
}

#[test]
fn links_that_lead_out_of_the_workspace_are_told() {
    let Some(scene) = Scene::new() else { return };
    if !rustix::process::geteuid().is_root() {
        return skip("root, who may write anywhere", "links_that_lead_out");
    }
    // Neither below `/tmp` nor `/var/tmp`, which are others inside; nothing is made there.
    let script = "ln -s /mnt/h/.bashrc build.log; ln -s /srv keys; ln -s ../../../../../../../../../../mnt/h/.bashrc src/deep; ln -s / all; \
         ln -s all/mnt/h by-all; ln -s /mnt/h gone; rm gone; \
         ln -s build.log inside; ln -s /usr/bin/env env; ln -s /tmp/x scratch; ln -s /mnt/h/.cargo/bin/cargo cargo";
    let ran = scene.shell(script);
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = ran.stderr.lines().filter(|line| line.contains("leads out"));
    let told: Vec<&str> = told.collect();
    for name in ["build.log", "keys", "src/deep", "all", "by-all"] {
        let path = format!("{} to ", scene.at("work").join(name).display());
        assert!(told.iter().any(|line| line.contains(&path)), "{name}: {ran:?}");
    }
    // `inside` leads out, too, by one that does.
    assert!(told.len() <= 6 && !ran.stderr.contains("gone"), "{ran:?}");
    let is = |line: &&str, name: &str| {
        line.contains(&format!("{} to ", scene.at("work").join(name).display()))
    };
    let others = ["env", "scratch", "cargo"];
    assert!(!told.iter().any(|line| others.iter().any(|name| is(line, name))), "{ran:?}");
    let log = scene.wardkeep(&["log", "--json"]);
    assert!(log.stdout.contains("\"links\":[{"), "{log:?}");
}
