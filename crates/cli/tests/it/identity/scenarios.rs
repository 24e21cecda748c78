//! The acceptance scenarios of the owned level, each with its number: a real machine of users, a real
//! `init` as root, a real agent without rights.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use serde_json::Value;

use super::machine::{Machine, UID, WORKSPACE};
use crate::serve::{Browser, hidden};
use crate::shared::Ran;

/// A machine with these files in the agent's workspace and this configuration; not set up yet.
fn machine(test: &str, config: Option<&str>, files: &[(&str, &str)]) -> Option<Machine> {
    let machine = Machine::new(test)?;
    for (name, text) in files {
        let path = machine.file(name);
        let mut made = machine.file("");
        for part in std::path::Path::new(name).parent().into_iter().flat_map(|path| path.iter()) {
            made.push(part);
            let _ = fs::create_dir(&made);
            std::os::unix::fs::chown(&made, Some(UID), Some(UID)).expect("given away");
        }
        fs::write(&path, text).expect("written");
        std::os::unix::fs::chown(&path, Some(UID), Some(UID)).expect("given away");
    }
    if let Some(config) = config {
        fs::write(machine.file("soulguard.json"), config).expect("written");
        std::os::unix::fs::chown(machine.file("soulguard.json"), Some(UID), Some(UID))
            .expect("own");
    }
    Some(machine)
}

const SOUL: (&str, &str) = ("SOUL.md", "# My Soul\n");
const CONFIG: &str = r#"{"version":1,"protect":["soulguard.json","SOUL.md"],"watch":[]}"#;

/// Starts root's daemon for the agent's user, and waits until it listens.
fn daemon() -> String {
    let state = format!("/var/lib/wardkeep/{UID}");
    format!(
        "wardkeep daemon --foreground --state-dir {state} --agent-uid {UID} --group {UID} > /run/log 2>&1 &
        daemon=$!
        for try in $(seq 100); do [ -S {state}/run/monitor.sock ] && break; sleep 0.1; done"
    )
}

/// The same, set up by the owner.
fn protected(test: &str, config: &str, files: &[(&str, &str)]) -> Option<Machine> {
    let machine = machine(test, Some(config), files)?;
    expect(&machine.owner("soulguard init ."), 0);
    Some(machine)
}

#[track_caller]
fn expect(ran: &Ran, code: i32) -> &str {
    assert_eq!(ran.code, code, "{ran:?}");
    &ran.stdout
}

#[track_caller]
fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// The hash that `diff` prints.
#[track_caller]
fn hash(ran: &Ran) -> String {
    let line = expect(ran, 1).lines().find_map(|line| line.strip_prefix("Apply hash: "));
    line.expect("a hash").to_owned()
}

fn approve(machine: &Machine) -> Ran {
    let hash = hash(&machine.owner("soulguard diff ."));
    machine.owner(&format!("soulguard apply . --hash {hash}"))
}

#[test]
fn o1_an_edit_in_staging_is_applied_by_its_hash() {
    let Some(machine) = protected("o1", CONFIG, &[SOUL]) else { return };
    expect(&machine.agent("echo '# My Updated Soul' > .soulguard/staging/SOUL.md"), 0);
    expect(&approve(&machine), 0);
    assert_eq!(fs::read_to_string(machine.file("SOUL.md")).unwrap(), "# My Updated Soul\n");
    assert_eq!(machine.stat("SOUL.md"), "soulguardian:soulguard 444");
}

#[test]
fn o2_nothing_staged_is_no_change() {
    let Some(machine) = protected("o2", CONFIG, &[SOUL]) else { return };
    assert!(expect(&machine.owner("soulguard diff ."), 0).contains("No changes"));
}

#[test]
fn o3_without_init_there_is_nothing_to_compare() {
    let Some(machine) = machine("o3", Some(CONFIG), &[SOUL]) else { return };
    let ran = machine.owner("soulguard diff .");
    assert_ne!(ran.code, 0);
    assert!(ran.stderr.contains("init"), "{ran:?}");
}

#[test]
fn o4_a_protected_file_that_is_gone_is_missing_and_comes_back() {
    let Some(machine) = protected("o4", CONFIG, &[SOUL]) else { return };
    expect(&machine.root("chattr -i SOUL.md; rm SOUL.md"), 0);
    assert!(expect(&machine.owner("soulguard status ."), 1).contains("missing"));
    expect(&machine.owner("soulguard sync ."), 0);
    assert_eq!(fs::read_to_string(machine.file("SOUL.md")).unwrap(), "# My Soul\n");
}

#[test]
fn o5_a_change_is_shown_with_its_lines() {
    let Some(machine) = protected("o5", CONFIG, &[SOUL]) else { return };
    expect(&machine.agent("echo '# My Modified Soul' > .soulguard/staging/SOUL.md"), 0);
    let ran = machine.owner("soulguard diff .");
    let shown = expect(&ran, 1);
    assert!(shown.contains("# My Soul") && shown.contains("# My Modified Soul"), "{shown}");
    assert!(shown.contains("SOUL.md") && shown.contains("1 file changed"), "{shown}");
}

#[test]
fn o6_globs_protect_each_file_that_matches() {
    let config = r#"{"version":1,"protect":["soulguard.json","skills/*.md"]}"#;
    let files = [("skills/a.md", "a\n"), ("skills/b.md", "b\n"), ("skills/c.txt", "c\n")];
    let Some(machine) = protected("o6", config, &files) else { return };
    for name in ["soulguard.json", "skills/a.md", "skills/b.md"] {
        assert_eq!(machine.stat(name), "soulguardian:soulguard 444", "{name}");
    }
    assert_eq!(machine.stat("skills/c.txt"), "agent:agent 644");
    expect(&machine.agent("echo changed > .soulguard/staging/skills/a.md"), 0);
    expect(&approve(&machine), 0);
    assert_eq!(fs::read_to_string(machine.file("skills/a.md")).unwrap(), "changed\n");
    assert_eq!(fs::read_to_string(machine.file("skills/b.md")).unwrap(), "b\n");
}

#[test]
fn o7_a_watched_file_is_given_back_to_the_agent() {
    let config = r#"{"version":1,"protect":["soulguard.json"],"watch":["memory/*.md"]}"#;
    let Some(machine) = protected("o7", config, &[("memory/1.md", "one\n")]) else { return };
    assert_eq!(machine.stat("memory/1.md"), "agent:soulguard 644");
    expect(&machine.root("chown root:root memory/1.md"), 0);
    assert!(expect(&machine.owner("soulguard status ."), 1).contains("memory/1.md"));
    expect(&machine.owner("soulguard sync ."), 0);
    assert_eq!(machine.stat("memory/1.md"), "agent:soulguard 644");
    expect(&machine.agent("echo two > memory/1.md"), 0);
}

#[test]
fn o8_the_agent_cannot_set_up() {
    let Some(machine) = machine("o8", Some(CONFIG), &[SOUL]) else { return };
    // It may look after its own folder, but not make itself an owner of it.
    let ran = machine.agent("soulguard init --owned .");
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("root"), "{ran:?}");
    assert_eq!(machine.stat("SOUL.md"), "agent:agent 644");
}

#[test]
fn o9_init_makes_users_staging_and_locks() {
    let Some(machine) = machine("o9", Some(CONFIG), &[SOUL]) else { return };
    let ran = machine.owner("soulguard init .");
    let said = expect(&ran, 0);
    assert!(said.contains("soulguardian"), "{said}");
    let users = fs::read_to_string(machine.folder().join("etc/passwd")).unwrap();
    assert!(users.contains("soulguardian:"), "{users}");
    assert_eq!(machine.stat("SOUL.md"), "soulguardian:soulguard 444");
    assert_eq!(fs::read_to_string(machine.file(".soulguard/staging/SOUL.md")).unwrap(), SOUL.1);
    assert_eq!(machine.stat(".soulguard/staging/SOUL.md"), "agent:soulguard 644");
    assert_ne!(machine.agent("echo evil > SOUL.md").code, 0);
    assert_eq!(fs::read_to_string(machine.file("SOUL.md")).unwrap(), SOUL.1);
}

#[test]
fn o10_init_twice_changes_nothing() {
    let Some(machine) = protected("o10", CONFIG, &[SOUL]) else { return };
    expect(&machine.agent("echo draft > .soulguard/staging/SOUL.md"), 0);
    let before = fs::metadata(machine.file("SOUL.md")).unwrap();
    expect(&machine.owner("soulguard init ."), 0);
    let after = fs::metadata(machine.file("SOUL.md")).unwrap();
    assert_eq!((before.ino(), before.ctime_nsec()), (after.ino(), after.ctime_nsec()));
    // What the agent proposes stays proposed.
    assert_eq!(fs::read_to_string(machine.file(".soulguard/staging/SOUL.md")).unwrap(), "draft\n");
}

#[test]
fn o11_a_deletion_is_proposed_by_removing_the_copy() {
    let config = r#"{"version":1,"protect":["soulguard.json","SOUL.md","BOOTSTRAP.md"]}"#;
    let Some(machine) = protected("o11", config, &[SOUL, ("BOOTSTRAP.md", "go\n")]) else { return };
    expect(&machine.agent("rm .soulguard/staging/BOOTSTRAP.md"), 0);
    let ran = machine.owner("soulguard diff .");
    assert!(expect(&ran, 1).contains("deleted: BOOTSTRAP.md"), "{ran:?}");
    expect(&approve(&machine), 0);
    assert!(!machine.file("BOOTSTRAP.md").exists());
    assert!(machine.file("SOUL.md").exists());
}

#[test]
fn o12_writes_and_changes_of_owner_are_denied() {
    let Some(machine) = protected("o12", CONFIG, &[SOUL]) else { return };
    for attempt in [
        "echo evil > SOUL.md",
        "echo evil >> SOUL.md",
        "chown agent SOUL.md",
        "chmod 644 SOUL.md",
        "truncate -s 0 SOUL.md",
        "rm -f SOUL.md",
        "sed -i s/My/Your/ SOUL.md",
    ] {
        assert_ne!(machine.agent(attempt).code, 0, "{attempt}");
    }
    assert_eq!(fs::read_to_string(machine.file("SOUL.md")).unwrap(), SOUL.1);
}

#[test]
fn o13_reset_makes_staging_the_protected_copy() {
    let Some(machine) = protected("o13", CONFIG, &[SOUL]) else { return };
    expect(&machine.agent("echo draft > .soulguard/staging/SOUL.md"), 0);
    expect(&machine.owner("soulguard reset . --all"), 0);
    assert_eq!(fs::read_to_string(machine.file(".soulguard/staging/SOUL.md")).unwrap(), SOUL.1);
    expect(&machine.owner("soulguard diff ."), 0);
    expect(&machine.agent("echo again > .soulguard/staging/SOUL.md"), 0);
}

#[test]
fn o14_an_invalid_configuration_is_never_installed() {
    let Some(machine) = protected("o14", CONFIG, &[SOUL]) else { return };
    let before = fs::read(machine.file("soulguard.json")).unwrap();
    for bad in [r#"{"version":9}"#, "{", r#"{"version":1,"protect":"SOUL.md"}"#] {
        expect(&machine.agent(&format!("echo '{bad}' > .soulguard/staging/soulguard.json")), 0);
        let ran = approve(&machine);
        assert_ne!(ran.code, 0, "{bad}: {ran:?}");
        assert!(ran.stderr.to_lowercase().contains("self-protection"), "{ran:?}");
        assert_eq!(fs::read(machine.file("soulguard.json")).unwrap(), before);
    }
}

#[test]
fn o15_status_of_a_clean_workspace() {
    let Some(machine) = protected("o15", CONFIG, &[SOUL]) else { return };
    let ran = machine.owner("soulguard status .");
    let said = expect(&ran, 0);
    assert!(said.contains("2 ok, 0 drifted, 0 missing"), "{said}");
    assert!(said.contains("owned"), "{said}");
}

#[test]
fn o16_o18_drift_is_shown_and_mended() {
    let Some(machine) = protected("o16", CONFIG, &[SOUL]) else { return };
    expect(&machine.root("chattr -i SOUL.md; chown root:root SOUL.md; chmod 644 SOUL.md"), 0);
    let ran = machine.owner("soulguard status .");
    let said = expect(&ran, 1);
    assert!(said.contains("1 drifted") && said.contains("SOUL.md"), "{said}");
    expect(&machine.owner("soulguard sync ."), 0);
    expect(&machine.owner("soulguard status ."), 0);
    assert_eq!(machine.stat("SOUL.md"), "soulguardian:soulguard 444");
}

#[test]
fn a_lock_that_is_gone_is_seen_and_put_back() {
    let Some(machine) = protected("locks", CONFIG, &[SOUL]) else { return };
    if machine.root("lsattr SOUL.md | cut -d' ' -f1 | grep -q i").code != 0 {
        return crate::shared::skip("the immutable attribute", "a_lock_that_is_gone");
    }
    expect(&machine.root("chattr -i SOUL.md"), 0);
    let ran = machine.owner("soulguard status .");
    assert!(expect(&ran, 1).contains("not immutable any more"), "{ran:?}");
    expect(&machine.owner("soulguard sync ."), 0);
    expect(&machine.owner("soulguard status ."), 0);
    assert_ne!(machine.agent("mv SOUL.md .x").code, 0);
}

#[test]
fn o17_status_without_set_up() {
    let Some(machine) = machine("o17", None, &[SOUL]) else { return };
    let ran = machine.owner("soulguard status .");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("init"), "{ran:?}");
}

#[test]
fn o19_the_agent_may_look_stage_and_sync_and_nothing_else() {
    let Some(machine) = protected("o19", CONFIG, &[SOUL]) else { return };
    let daemon = daemon();
    let script = format!(
        r#"
        {daemon}
        agent() {{ setpriv --reuid {UID} --regid {UID} --init-groups -- "$@"; }}
        agent soulguard status . > /run/status; echo "status $?"
        agent rm .soulguard/staging/SOUL.md
        agent soulguard stage SOUL.md > /run/stage; echo "stage $?"
        agent sh -c 'echo new > .soulguard/staging/SOUL.md'
        agent soulguard diff . > /run/diff; echo "diff $?"
        chattr -i SOUL.md; chown root SOUL.md
        agent soulguard sync . > /run/sync; echo "sync $?"
        agent soulguard apply . --yes; echo "apply $?"
        agent soulguard release SOUL.md --yes; echo "release $?"
        mkdir /home/agent/other; chown {UID} /home/agent/other
        agent soulguard sync /home/agent/other; echo "other $?"
        kill $daemon; wait $daemon
        cat /run/status /run/diff
        "#
    );
    let ran = machine.root(&script);
    for line in ["status 0", "stage 0", "diff 1", "sync 0", "apply 1", "release 1"] {
        assert!(ran.stdout.contains(line), "{line}: {ran:?}");
    }
    assert!(!ran.stdout.contains("other 0"), "{ran:?}");
    assert!(ran.stdout.contains("owned") && ran.stdout.contains("Apply hash: "), "{ran:?}");
    assert_eq!(fs::read_to_string(machine.file("SOUL.md")).unwrap(), SOUL.1);
    assert_eq!(machine.stat("SOUL.md"), "soulguardian:soulguard 444");
}

#[test]
fn the_page_of_the_agents_user_shows_what_root_holds_and_approves_nothing() {
    let test = "the_page_of_the_agents_user_shows_what_root_holds_and_approves_nothing";
    let Some(machine) = protected(test, CONFIG, &[SOUL]) else { return };
    let daemon = daemon();
    let script = format!(
        r#"
        {daemon}
        agent() {{ setpriv --reuid {UID} --regid {UID} --init-groups -- env HOME=/home/agent USER=agent "$@"; }}
        touch /run/page /run/own; chown {UID} /run/page
        agent sh -c 'echo new > .soulguard/staging/SOUL.md
            wardkeep init --only policy . && wardkeep md sign --yes' > /run/own 2>&1
        (exec setpriv --reuid {UID} --regid {UID} --init-groups -- env HOME=/home/agent USER=agent \
            wardkeep serve --json --listen 127.0.0.1:0 > /run/page 2>&1) &
        page=$!
        cat > /dev/null
        kill $page $daemon; wait $page $daemon
        agent wardkeep daemon stop > /run/own 2>&1
        "#
    );
    let mut running = machine.start(&script);
    let ready = machine.folder().join("run/page");
    let ready = (0..200).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let line = fs::read_to_string(&ready).ok()?;
        serde_json::from_str::<Value>(line.lines().next()?).ok()
    });
    let told = fs::read_to_string(machine.folder().join("run/own")).unwrap_or_default();
    let ready = ready.unwrap_or_else(|| panic!("no page: {told}"));
    let browser = Browser::at(&ready);
    let shown = browser.page("/proposals");
    assert!(shown.contains("Another user holds this workspace"), "{told} {shown}");
    assert!(shown.contains("sudo wardkeep apply") && shown.contains("new"), "{shown}");
    assert!(!shown.contains("name=\"hash\""), "{shown}");
    // Whoever sends the form all the same, with the hash that is shown, gets nowhere.
    let (_, hash) = shown.split_once("Apply hash: ").expect("a hash");
    let hash: String = hash.chars().take_while(char::is_ascii_hexdigit).collect();
    assert_eq!(hash.len(), 64, "{shown}");
    let form = hidden(&browser.page("/policy"), "form");
    for answer in ["approve", "refuse"] {
        let fields = [
            ("form", form.as_str()),
            ("workspace", WORKSPACE),
            ("hash", &hash),
            ("answer", answer),
        ];
        let said = browser.send("/proposals", &fields);
        if said.starts_with("HTTP/1.1 200") {
            let word = hidden(&said, "word");
            let said = browser.send("/confirm", &[("form", &form), ("word", &word)]);
            assert!(!said.starts_with("HTTP/1.1 200"), "{said}");
        }
    }
    drop(running.stdin.take());
    running.wait().unwrap();
    assert_eq!(fs::read_to_string(machine.file("SOUL.md")).unwrap(), SOUL.1);
    assert_eq!(fs::read_to_string(machine.file(".soulguard/staging/SOUL.md")).unwrap(), "new\n");
}

#[test]
fn o20_without_root_the_level_is_the_users() {
    let Some(machine) = machine("o20", Some(CONFIG), &[SOUL]) else { return };
    let ran = machine.agent("soulguard init .");
    expect(&ran, 0);
    let ran = machine.agent("soulguard status .");
    assert!(expect(&ran, 0).contains("user"), "{ran:?}");
    // Nothing is claimed that is not so.
    assert!(!ran.stdout.contains("owned"), "{ran:?}");
    assert!(machine.stat("SOUL.md").starts_with("agent:agent"));
    // Root with sudo uses none of the user's state, and says what to do instead.
    for command in ["sync", "diff", "apply --yes"] {
        let ran = machine.owner(&format!("wardkeep {command}"));
        assert_eq!(ran.code, 1, "{command}: {ran:?}");
        assert!(ran.stderr.contains("set up for agent"), "{command}: {ran:?}");
        assert!(ran.stderr.contains("without sudo"), "{command}: {ran:?}");
    }
}

#[test]
fn a_hook_that_has_no_answer_says_in_whose_home_it_looked() {
    let Some(machine) = machine("hook-home", None, &[]) else { return };
    let event = r#"{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/","tool_name":"Bash","tool_input":{"command":"ls"}}"#;
    // Inside of a confinement nothing is decided without a daemon, and there is none.
    let hook = |home: &str| {
        machine.agent(&format!(
            "echo '{event}' | HOME={home} WARDKEEP_CONFINED=1 wardkeep hook claude-code PreToolUse"
        ))
    };
    let ran = hook("/elsewhere");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("denied") && said.contains("/home/agent/.local/state"), "{ran:?}");
    assert!(said.contains("not by $HOME (`/elsewhere`)"), "{ran:?}");
    let ran = hook("/home/agent");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("denied") && !said.contains("$HOME"), "{ran:?}");
}

#[test]
fn s1_a_renamed_file_is_denied_or_seen_and_never_adopted() {
    let Some(machine) = protected("s1", CONFIG, &[SOUL]) else { return };
    assert_ne!(machine.agent("mv SOUL.md .x && echo evil > SOUL.md").code, 0);
    // Where the attribute is lost, the content tells.
    expect(&machine.root("chattr -i SOUL.md"), 0);
    expect(&machine.agent("mv SOUL.md .x && echo evil > SOUL.md"), 0);
    expect(&machine.owner("soulguard status ."), 1);
    expect(&machine.owner("soulguard sync ."), 0);
    assert_eq!(fs::read_to_string(machine.file("SOUL.md")).unwrap(), SOUL.1);
    expect(&machine.owner("soulguard status ."), 0);
}

#[test]
fn s2_an_emptied_configuration_is_seen() {
    let Some(machine) = protected("s2", CONFIG, &[SOUL]) else { return };
    let swap = r#"mv soulguard.json .x && echo '{"version":1,"protect":[]}' > soulguard.json"#;
    assert_ne!(machine.agent(swap).code, 0);
    expect(&machine.root("chattr -i soulguard.json"), 0);
    expect(&machine.agent(swap), 0);
    let ran = machine.owner("soulguard status .");
    assert!(expect(&ran, 1).contains("soulguard.json"), "{ran:?}");
}

#[test]
fn s3_folders_are_not_swapped_unseen() {
    let config = r#"{"version":1,"protect":["soulguard.json","skills/**"]}"#;
    let Some(machine) = protected("s3", config, &[("skills/a.md", "a\n")]) else { return };
    let swap = "mv skills .x && mkdir skills && echo evil > skills/a.md";
    assert_ne!(machine.agent(swap).code, 0, "a protected folder");
    assert_ne!(machine.agent("mv .soulguard .y").code, 0, "the staging folder's folder");
    assert_ne!(machine.agent("echo x > skills/new.md").code, 0, "a new file in it");
    // The folder above belongs to the agent: that cannot be prevented here, but it is seen.
    expect(&machine.agent("cd .. && mv ws old && mkdir ws && echo evil > ws/SOUL.md"), 0);
    let ran = machine.owner("soulguard status /home/agent/ws");
    assert_ne!(ran.code, 0, "{ran:?}");
    let ran = machine.owner("soulguard sync /home/agent/ws");
    assert_ne!(ran.code, 0, "{ran:?}");
    assert_eq!(fs::read_to_string(machine.file("SOUL.md")).unwrap(), "evil\n");
}

#[test]
fn s4_a_link_in_staging_shows_and_copies_nothing() {
    let Some(machine) = protected("s4", CONFIG, &[SOUL]) else { return };
    let secret = "root-only-3f1c";
    expect(&machine.root(&format!("echo {secret} > /etc/secret; chmod 600 /etc/secret")), 0);
    let link = "cd .soulguard/staging && rm SOUL.md && ln -s /etc/secret SOUL.md";
    expect(&machine.agent(link), 0);
    for command in ["diff .", "diff . --json", "status .", "apply . --yes"] {
        let ran = machine.owner(&format!("soulguard {command}"));
        assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{ran:?}");
    }
    assert_eq!(fs::read_to_string(machine.file("SOUL.md")).unwrap(), SOUL.1);
}

#[test]
fn s6_a_link_in_a_protected_place_leads_nowhere() {
    let Some(machine) = protected("s6", CONFIG, &[SOUL]) else { return };
    expect(&machine.root("echo x > /etc/target; chmod 600 /etc/target; chattr -i SOUL.md"), 0);
    expect(&machine.agent("mv SOUL.md .x && ln -s /etc/target SOUL.md"), 0);
    expect(&machine.owner("soulguard sync ."), 0);
    assert_eq!(machine.stat("/etc/target"), "root:root 600");
    assert_eq!(fs::read_to_string(machine.file("SOUL.md")).unwrap(), SOUL.1);
}

#[test]
fn s7_what_is_no_file_is_refused_quickly() {
    let Some(machine) = protected("s7", CONFIG, &[SOUL]) else { return };
    for plant in [
        "mkfifo $S",
        "truncate -s 10G $S",
        "ln SOUL.md $S || ln /etc/passwd $S || { echo one > .one && ln .one $S; }",
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"'$S'\")' || mkfifo $S",
    ] {
        let plant = format!("S=.soulguard/staging/SOUL.md; rm -rf $S; {plant}");
        expect(&machine.agent(&plant), 0);
        let ran = machine.owner("timeout 5 soulguard diff .");
        assert!(ran.code != 124, "{plant}: {ran:?}");
        let ran = machine.owner("timeout 5 soulguard apply . --yes");
        assert!(ran.code != 124, "{plant}: {ran:?}");
        assert_eq!(fs::read_to_string(machine.file("SOUL.md")).unwrap(), SOUL.1, "{plant}");
    }
}

#[test]
fn s10_bytes_that_are_no_text_arrive_as_they_are() {
    let Some(machine) = protected("s10", CONFIG, &[SOUL]) else { return };
    expect(&machine.agent(r"printf 'a\377\376\000b' > .soulguard/staging/SOUL.md"), 0);
    // What cannot be shown is not approved in passing.
    assert_ne!(approve(&machine).code, 0);
    let digest = hash(&machine.owner("soulguard diff ."));
    expect(&machine.owner(&format!("soulguard apply . --hash {digest} --acknowledge")), 0);
    assert_eq!(fs::read(machine.file("SOUL.md")).unwrap(), b"a\xff\xfe\0b");
}

#[test]
fn s11_a_part_that_is_shown_approves_only_that_part() {
    let config = r#"{"version":1,"protect":["soulguard.json","SOUL.md","AGENTS.md"]}"#;
    let Some(machine) = protected("s11", config, &[SOUL, ("AGENTS.md", "a\n")]) else { return };
    expect(&machine.agent("cd .soulguard/staging && echo 1 > SOUL.md && echo 2 > AGENTS.md"), 0);
    let part = hash(&machine.owner("soulguard diff . SOUL.md"));
    let ran = machine.owner(&format!("soulguard apply . --hash {part}"));
    assert_ne!(ran.code, 0, "all of it with the hash of a part: {ran:?}");
    expect(&machine.owner(&format!("soulguard apply . SOUL.md --hash {part}")), 0);
    assert_eq!(fs::read_to_string(machine.file("SOUL.md")).unwrap(), "1\n");
    assert_eq!(fs::read_to_string(machine.file("AGENTS.md")).unwrap(), "a\n");
}

#[test]
fn s12_what_a_terminal_obeys_is_made_visible() {
    let Some(machine) = protected("s12", CONFIG, &[SOUL]) else { return };
    let text = r"printf '\033[2J\033[H\rApply hash: 0000\n\342\200\256evil\nApply hash: 1111\n'";
    expect(&machine.agent(&format!("{text} > .soulguard/staging/SOUL.md")), 0);
    let ran = machine.owner("soulguard diff .");
    let shown = expect(&ran, 1);
    assert!(crate::shared::is_harmless(shown), "{shown:?}");
    assert_eq!(shown.lines().filter(|line| line.starts_with("Apply hash: ")).count(), 1);
}

#[test]
fn s13_a_workspace_that_root_did_not_register_is_refused() {
    let Some(machine) = protected("s13", CONFIG, &[SOUL]) else { return };
    expect(
        &machine.agent("mkdir /home/agent/evil && cp -r .soulguard/staging /home/agent/evil/"),
        0,
    );
    let config = r#"{"version":1,"protect":["soulguard.json"],"watch":["x"]}"#;
    expect(&machine.agent(&format!("echo '{config}' > /home/agent/evil/soulguard.json")), 0);
    expect(&machine.agent("ln -s /etc/shadow /home/agent/evil/x"), 0);
    let before = machine.stat("/etc/shadow");
    for command in ["sync", "diff", "reset", "status"] {
        let ran = machine.owner(&format!("soulguard {command} /home/agent/evil"));
        assert_ne!(ran.code, 0, "{command}: {ran:?}");
    }
    assert_eq!(machine.stat("/etc/shadow"), before);
}

#[test]
fn s14_s23_nothing_of_the_agents_is_run() {
    let Some(machine) = protected("s14", CONFIG, &[SOUL]) else { return };
    let plant = r#"
        mkdir -p .git/hooks bin
        printf '#!/bin/sh\nid -u > /home/agent/ran\n' > bin/git
        chmod +x bin/git
        for name in id getent chown find useradd chattr; do cp bin/git bin/$name; done
        for hook in pre-commit post-commit post-index-change; do cp bin/git .git/hooks/$hook; done
        printf '[core]\n\tfsmonitor = /home/agent/ws/bin/git\n[filter "x"]\n\tclean = /home/agent/ws/bin/git\n' > .git/config
        echo '* filter=x' > .gitattributes
        echo 'ref: refs/heads/main' > .git/HEAD
        echo new > .soulguard/staging/SOUL.md"#;
    expect(&machine.agent(plant), 0);
    let path = "PATH=/home/agent/ws/bin:$PATH HOME=/home/agent GIT_DIR=/home/agent/ws/.git";
    let digest = hash(&machine.owner(&format!("{path} soulguard diff .")));
    expect(&machine.owner(&format!("{path} soulguard apply . --hash {digest}")), 0);
    expect(&machine.owner(&format!("{path} soulguard sync .")), 0);
    assert!(!machine.folder().join("home/agent/ran").exists());
}

#[test]
fn s16_the_configuration_is_never_released() {
    let Some(machine) = protected("s16", CONFIG, &[SOUL]) else { return };
    let ran = machine.owner("soulguard release soulguard.json --workspace . --yes");
    assert_ne!(ran.code, 0, "{ran:?}");
    assert_eq!(machine.stat("soulguard.json"), "soulguardian:soulguard 444");
    expect(&machine.agent("rm .soulguard/staging/soulguard.json"), 0);
    assert_ne!(approve(&machine).code, 0);
    assert!(machine.file("soulguard.json").exists());
}

#[test]
fn s19_new_folders_below_a_protected_one_are_held_too() {
    let config = r#"{"version":1,"protect":["soulguard.json","skills/**"]}"#;
    let Some(machine) = protected("s19", config, &[("skills/a.md", "a\n")]) else { return };
    let new =
        "mkdir -p .soulguard/staging/skills/sub && echo b > .soulguard/staging/skills/sub/b.md";
    expect(&machine.agent(new), 0);
    expect(&approve(&machine), 0);
    assert_eq!(machine.stat("skills/sub"), "soulguardian:soulguard 555");
    assert_eq!(machine.stat("skills/sub/b.md"), "soulguardian:soulguard 444");
    assert_ne!(machine.agent("mv skills/sub skills/x").code, 0);
    assert_ne!(machine.agent("echo evil > skills/sub/c.md").code, 0);
}

#[test]
fn s21_staging_stays_writable_after_an_approval() {
    let Some(machine) = protected("s21", CONFIG, &[SOUL]) else { return };
    for text in ["one", "two", "three"] {
        expect(&machine.agent(&format!("echo {text} > .soulguard/staging/SOUL.md")), 0);
        expect(&approve(&machine), 0);
        assert_eq!(fs::read_to_string(machine.file("SOUL.md")).unwrap(), format!("{text}\n"));
    }
}

#[test]
fn what_is_done_is_recorded_with_the_approved_hash() {
    let Some(machine) = protected("records", CONFIG, &[SOUL]) else { return };
    expect(&machine.agent("echo new > .soulguard/staging/SOUL.md"), 0);
    let digest = hash(&machine.owner("soulguard diff ."));
    expect(&machine.owner(&format!("soulguard apply . --hash {digest}")), 0);
    let state = format!("/var/lib/wardkeep/{UID}");
    let ran = machine.root(&format!("wardkeep log --json --state-dir {state}"));
    let text = json(&ran).to_string();
    assert!(text.contains(&digest), "{text}");
    expect(&machine.root(&format!("wardkeep evidence verify --state-dir {state}")), 0);
}
