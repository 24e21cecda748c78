//! What a program was kept from is told; and what an owner adds is held.

use std::fs;

use crate::lab::{Lab, users};

const TELL: (&str, &str) = ("WARDKEEP_TEST_TELL", "1");

#[test]
fn names_and_calls_that_were_denied_are_told_with_how_often() {
    for uid in users() {
        let lab = Lab::new(uid);
        let script =
            "echo x > CLAUDE.md; echo x > CLAUDE.md; unshare -U true; unshare -m true; exit 3";
        let (code, out) = lab.run_with(script, &[TELL]);
        assert_eq!(code, 3, "{out}");
        let name = format!(
            "denied: Name open {} (`CLAUDE.md` is protected) by bash x2",
            lab.at("ws/CLAUDE.md").display()
        );
        assert!(out.contains(&name), "{out}");
        assert!(
            out.contains("denied: Call unshare (no program needs it inside) by unshare x2"),
            "{out}"
        );
    }
}

#[test]
fn masked_files_that_were_opened_are_told_once() {
    for uid in users() {
        let lab = Lab::new(uid);
        fs::write(lab.at("ws/sub/.env.local"), "CANARY\n").unwrap();
        lab.give();
        let (code, out) = lab.run_with("cat .env .env; ls -la sub; true", &[TELL]);
        assert_eq!(code, 0, "{out}");
        let line = format!(
            "denied: Masked open {} (it is shown empty) by  x1",
            lab.at("ws/.env").display()
        );
        assert_eq!(out.matches(&line).count(), 1, "{out}");
        assert!(!out.contains("sub/.env.local (") && !out.contains("CANARY"), "{out}");
    }
}

#[test]
fn denied_calls_stay_denied_under_a_flood() {
    let lab = Lab::new(users()[0]);
    let script = "python3 - <<'E'
import ctypes,threading,sys
L=ctypes.CDLL(None,use_errno=True)
through=[]
def flood():
    for _ in range(2000):
        if L.syscall(101,16,1,0,0)>=0 or L.syscall(272,0x10000000)>=0 or L.syscall(165,0,0,0,0,0)>=0: through.append(1)
threads=[threading.Thread(target=flood) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
sys.exit(1 if through else 0)
E";
    let (code, out) = lab.run_with(script, &[TELL]);
    assert_eq!(code, 0, "{out}");
    for call in ["ptrace", "unshare", "mount"] {
        assert!(out.contains(&format!("denied: Call {call} ")), "{out}");
    }
}

/// Many denials hide none that is of another kind or rule, and how many there were is told.
#[test]
fn what_matters_is_not_hidden_behind_many_others() {
    let lab = Lab::new(users()[0]);
    let script = "python3 - <<'E'
import os
def deny(path):
    try: os.close(os.open(path, os.O_WRONLY|os.O_CREAT))
    except OSError: return
    raise SystemExit(3)
for i in range(4000):
    os.mkdir(str(i))
    deny('%d/CLAUDE.md' % i)
deny('.mcp.json'); deny('sub/.vscode')
E
unshare -U true; true";
    let (code, out) = lab.run_with(script, &[TELL]);
    assert_eq!(code, 0, "{out}");
    for told in ["ws/.mcp.json (", "ws/sub/.vscode (", "denied: Call unshare ", "denied: More "] {
        assert!(out.contains(told), "{told}: {} lines", out.lines().count());
    }
    let names =
        out.lines().filter(|line| line.starts_with("denied: ") && !line.contains("unshare"));
    let times = names.filter_map(|line| line.rsplit_once(" x")?.1.parse::<u64>().ok());
    assert_eq!(times.sum::<u64>(), 4002);
}

#[test]
fn a_run_that_learns_tells_what_is_there_and_not_shown() {
    for uid in users() {
        let lab = Lab::new(uid);
        let script = "cat $H/notes.txt; cat $H/nothing.txt; test -e $OUT/victim.txt; ls $H/.aws; cat ../outside/victim.txt; echo x > made; cat made >/dev/null; exit 4";
        let (code, out) = lab.run_with(script, &[TELL, ("WARDKEEP_TEST_LEARN", "1")]);
        assert_eq!(code, 4, "{out}");
        for name in ["home/notes.txt", "outside/victim.txt", "home/.aws"] {
            let path = lab.at(name);
            assert!(
                out.contains(&format!("{} (it is not shown)", path.display())),
                "{name}: {out}"
            );
        }
        assert!(!out.contains("nothing.txt") && !out.contains("ws/made"), "{out}");
        assert!(!out.contains("CANARY"), "{out}");
        // Without learning nobody is told, and nothing more is seen.
        let (_, out) = lab.run_with(script, &[TELL]);
        assert!(!out.contains("it is not shown") && !out.contains("CANARY"), "{out}");
    }
}

#[test]
fn a_run_that_learns_holds_as_every_other() {
    let lab = Lab::new(users()[0]);
    let script = "try() { if bash -c \"$*\" >/dev/null 2>&1; then echo \"through: $*\"; fi; }
        try 'echo x > .mcp.json'; try 'echo x >> AGENTS.md'; try 'grep CANARY .env'; try 'mkdir .claude'
        try \"grep CANARY $H/.ssh/id_rsa\"; try 'unshare -U true'; try 'ln -s . .cargo'; try 'exec 3<>.git/config'";
    let (code, out) = lab.run_with(script, &[("WARDKEEP_TEST_LEARN", "1")]);
    assert!(code == 0 && !out.contains("through"), "{out}");
}

#[test]
fn what_an_owner_adds_is_held() {
    for uid in users() {
        let lab = Lab::new(uid);
        fs::create_dir_all(lab.at("ws/memory")).unwrap();
        fs::write(lab.at("ws/memory/day.md"), "mine\n").unwrap();
        fs::write(lab.at("ws/plan.key"), "mine\n").unwrap();
        lab.give();
        let script = "try() { if bash -c \"$*\" >/dev/null 2>&1; then echo \"through: $*\"; fi; }
            try 'echo x >> memory/day.md'; try 'echo x > memory/new.md'; try 'rm -rf memory'; try 'mv memory m'
            try 'echo x > sub/a.key'; try 'echo x >> plan.key'; try 'mkdir -p sub/notes && echo x > sub/notes/a.md'
            try 'ln -s ../sub sub/notes2 && mv -T sub/notes2 sub/notes'; try 'rm plan.key'
            echo fine > sub/memory && echo fine > sub/notes.txt && cat sub/memory";
        let protect = ("WARDKEEP_TEST_PROTECT", "/memory/**,*.key,notes/*.md");
        let (code, out) = lab.run_with(script, &[protect]);
        assert_eq!((code, out.as_str()), (0, "fine\n"), "as {uid}");
        assert_eq!(fs::read_to_string(lab.at("ws/memory/day.md")).unwrap(), "mine\n");
        assert_eq!(fs::read_to_string(lab.at("ws/plan.key")).unwrap(), "mine\n");
    }
}

/// What an owner releases is released where he says, and nowhere else: not by moving the folder that it is in.
#[test]
fn what_was_released_at_one_place_stays_there() {
    for uid in users() {
        let lab = Lab::new(uid);
        fs::create_dir_all(lab.at("ws/docs/deep/docs")).unwrap();
        fs::create_dir_all(lab.at("ws/plain/repo/.git")).unwrap();
        fs::write(lab.at("ws/docs/agents.md"), "text\n").unwrap();
        lab.give();
        let script = "try() { if bash -c \"$*\" >/dev/null 2>&1; then echo \"through: $*\"; fi; }
            echo more >> docs/agents.md && echo more > docs/deep/docs/agents.md
            try 'mv docs other'; try 'mv docs/deep/docs docs/x'; try 'mv docs/agents.md sub/agents.md'
            try 'mkdir e; python3 -c \"import ctypes,sys;sys.exit(ctypes.CDLL(None).renameat2(-100,b\\\"docs\\\",-100,b\\\"e\\\",2))\"'
            mkdir -p b && mv docs/deep b/deep && mv plain plain2 && cat b/deep/docs/agents.md";
        let (code, out) = lab.run_with(script, &[("WARDKEEP_TEST_RELEASE", "docs/agents.md")]);
        assert_eq!((code, out.as_str()), (0, "more\n"), "as {uid}");
        assert_eq!(fs::read_to_string(lab.at("ws/docs/agents.md")).unwrap(), "text\nmore\n");
    }
}

/// A home that lies where everything is made anew is a home all the same: these are in `/var/tmp`.
#[test]
fn an_agents_own_folder_holds_all_but_its_settings() {
    for uid in users() {
        let lab = Lab::new(uid);
        fs::write(lab.at("home/.claude/settings.json"), "{}\n").unwrap();
        lab.give();
        let own = lab.at("home/.claude").display().to_string();
        let script = "try() { if bash -c \"$*\" >/dev/null 2>&1; then echo \"through: $*\"; fi; }
            cd $H/.claude && mkdir -p todos && echo fine > todos/a
            try 'echo x > settings.json'; try 'echo x > settings.local.json'; try 'mkdir hooks'; try 'rm settings.json'
            try 'mkdir commands'; try 'ln -s todos skills'; try 'mkdir x; mv x agents'; try 'echo x > todos/CLAUDE.md'
            cd $WS; try 'mkdir .claude'; try 'mkdir -p sub/.claude'; cat $H/.claude/todos/a";
        let (code, out) = lab.run_with(script, &[("WARDKEEP_TEST_WRITE", &own)]);
        assert_eq!((code, out.as_str()), (0, "fine\n"), "as {uid}");
        assert_eq!(fs::read_to_string(lab.at("home/.claude/settings.json")).unwrap(), "{}\n");
    }
}

#[test]
fn of_a_home_only_what_builds_need_is_shown() {
    for uid in users() {
        let lab = Lab::new(uid);
        for name in [
            "go/bin",
            "go/pkg/mod/x",
            "go/src/secret",
            ".local/share/uv/credentials",
            ".local/share/uv/tools",
        ] {
            fs::create_dir_all(lab.at("home").join(name)).unwrap();
        }
        lab.give();
        let script = "cd $H; ls -d go/bin go/pkg/mod/x .local/share/uv/tools; ls go .local/share/uv; touch go/bin/x 2>/dev/null && echo through";
        let (_, out) = lab.run(script);
        assert!(out.contains("go/pkg/mod/x") && out.contains("uv/tools"), "{out}");
        assert!(
            !out.contains("src") && !out.contains("credentials") && !out.contains("through"),
            "{out}"
        );
    }
}

#[test]
fn the_temporary_folders_have_an_end() {
    let lab = Lab::new(users()[0]);
    let script =
        "df -k --output=size /tmp | tail -1; head -c 9000000 /dev/zero > /tmp/x; stat -c %s /tmp/x";
    let (_, out) = lab.run_with(script, &[("WARDKEEP_TEST_SCRATCH", "8388608")]);
    let sizes: Vec<u64> = out.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert!(sizes[0] == 8192 && sizes[1] <= 8_388_608, "{out}");
    // Without a word about it: four gibibytes at most.
    let (_, out) = lab.run("df -k --output=size /tmp | tail -1; df --output=itotal /tmp | tail -1");
    let sizes: Vec<u64> = out.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert!(sizes[0] <= 4 << 20 && sizes[1] <= 1_000_000, "{out}");
}
