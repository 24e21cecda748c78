//! A second opinion: what ours sign and chain, a few lines of Python verify.

use std::process::Command;

use wardkeep_policy::audit::{Action, Event, Source};

use crate::lab::{Lab, POLICY, skip};

const MANIFEST: &str = r#"
import hashlib, hmac, json, pathlib, struct, sys
state, workspace = map(pathlib.Path, sys.argv[1:])
key = (state / ".device_key").read_bytes()
policy = (workspace / "LocalGPT.md").read_bytes()
m = json.loads((workspace / ".localgpt_manifest.json").read_text())
assert list(m) == ["version", "hmac_sha256", "signed_at", "signed_by", "content_sha256", "wardkeep"]
assert m["version"] == 1 and m["signed_by"] == "cli" and len(key) == 32
assert m["content_sha256"] == hashlib.sha256(policy).hexdigest()
assert m["hmac_sha256"] == hmac.new(key, policy, hashlib.sha256).hexdigest()
w = m["wardkeep"]
parts = [b"policy manifest v1", bytes.fromhex(m["content_sha256"]), bytes.fromhex(w["workspace_id"]),
         struct.pack(">Q", w["counter"]), m["signed_at"].encode(), m["signed_by"].encode()]
bound = b"\xffwardkeep\0" + b"".join(struct.pack(">Q", len(p)) + p for p in parts)
assert w["hmac"] == hmac.new(key, bound, hashlib.sha256).hexdigest()
"#;

const CHAIN: &str = r#"
import hashlib, json, pathlib, sys
previous = "0" * 64
lines = pathlib.Path(sys.argv[1]).read_bytes().split(b"\n")
assert lines.pop() == b"" and len(lines) == int(sys.argv[2])
for line in lines:
    entry = json.loads(line)
    assert list(entry) == ["ts", "action", "content_sha256", "prev_entry_sha256", "source", "detail"]
    assert entry["prev_entry_sha256"] == previous
    previous = hashlib.sha256(line).hexdigest()
"#;

/// Whether the script ended well; `None` where there is no Python.
fn python(script: &str, arguments: &[&std::ffi::OsStr]) -> Option<bool> {
    let run = Command::new("python3").arg("-c").arg(script).args(arguments).output();
    run.ok().map(|output| output.status.success())
}

#[test]
fn python_verifies_the_manifest() {
    let lab = Lab::signed(POLICY);
    let state = lab.state("");
    let workspace = lab.workspace_path();
    let check = || python(MANIFEST, &[state.as_os_str(), workspace.as_os_str()]);
    let Some(good) = check() else {
        skip("python3", "python_verifies_the_manifest");
        return;
    };
    assert!(good);
    lab.write("other");
    assert_eq!(check(), Some(false), "the script can say no");
}

#[test]
fn python_verifies_the_chain() {
    let lab = Lab::signed(POLICY);
    for action in Action::ALL {
        lab.append(&Event::new(action, Source::tool("wrîte \"x\"")).detail("é✓\n\u{1f600}"));
    }
    let path = lab.store.audit_path();
    let check = || python(CHAIN, &[path.as_os_str(), "11".as_ref()]);
    let Some(good) = check() else {
        skip("python3", "python_verifies_the_chain");
        return;
    };
    assert!(good);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("missing", "Missing", 1)).unwrap();
    assert_eq!(check(), Some(false), "the script can say no");
}
