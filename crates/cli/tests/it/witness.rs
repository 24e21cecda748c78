//! `wardkeep witness` with the real binary.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::process::Stdio;

use wardkeep_evidence::note::VerifierKey;

use crate::shared::is_harmless;
use crate::state::Scene;

const KEY: [&str; 2] = ["witness", "key"];

#[test]
fn the_key_is_made_once_and_for_its_owner_alone() {
    let scene = Scene::new();
    let key = scene.expect(0, "s", &KEY).stdout;
    let parsed = VerifierKey::parse(key.trim_end()).unwrap();
    let hash = wardkeep_evidence::hash::sha256(&parsed.public_key());
    let hash = wardkeep_evidence::hash::encode_hex(&hash);
    assert_eq!(parsed.name(), format!("wardkeep-witness/{}", &hash[..16]));
    assert_eq!(scene.expect(0, "s", &KEY).stdout, key);
    for (path, mode) in [("s", 0o700), ("s/witness", 0o700), ("s/witness/key", 0o600)] {
        assert_eq!(fs::metadata(scene.at(path)).unwrap().mode() & 0o777, mode, "{path}");
    }
    let ready = scene.witness("s", &[]).ready.clone();
    assert_eq!(ready["key"], key.trim_end());
    // Another folder is another witness.
    assert_ne!(scene.expect(0, "s", &["witness", "key", "--dir", "other"]).stdout, key);
}

#[test]
fn a_key_that_others_may_have_is_refused() {
    let scene = Scene::new();
    scene.expect(0, "s", &KEY);
    let key = scene.at("s/witness/key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let open = scene.expect(4, "s", &KEY);
    assert!(open.stderr.contains("can be read by other users"), "{open:?}");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    scene.expect(0, "s", &KEY);
    fs::rename(&key, scene.at("key")).unwrap();
    let missing = scene.expect(4, "s", &KEY);
    assert!(missing.stderr.contains("is missing, and this witness had one"), "{missing:?}");
    symlink(scene.at("key"), &key).unwrap();
    let link = scene.expect(4, "s", &KEY);
    assert!(link.stderr.contains("is a link"), "{link:?}");
    fs::remove_file(&key).unwrap();
    fs::write(&key, "no key\n").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let damaged = scene.expect(4, "s", &KEY);
    assert!(damaged.stderr.contains("does not hold a key"), "{damaged:?}");
    fs::set_permissions(scene.at("s/witness"), fs::Permissions::from_mode(0o777)).unwrap();
    scene.expect(4, "s", &KEY);
}

#[test]
fn the_name_does_not_change_by_accident() {
    let scene = Scene::new();
    let named = [&KEY[..], &["--name", "witness.example"]].concat();
    let key = scene.expect(0, "s", &named).stdout;
    assert!(key.starts_with("witness.example+"), "{key}");
    assert_eq!(scene.expect(0, "s", &KEY).stdout, key);
    assert_eq!(scene.expect(0, "s", &named).stdout, key);
    let other = scene.expect(1, "s", &[&KEY[..], &["--name", "other"]].concat());
    assert!(other.stderr.contains("is called `witness.example`, not `other`\nhint: "), "{other:?}");
    for bad in ["", "a b", "a+b", "a\u{1b}[31m"] {
        let refused = scene.expect(1, "t", &[&KEY[..], &["--name", bad]].concat());
        assert!(is_harmless(&refused.stderr), "{refused:?}");
    }
    assert!(scene.expect(0, "t", &KEY).stdout.starts_with("wardkeep-witness/"));
}

#[test]
fn it_listens_on_this_machine_unless_told_otherwise() {
    let scene = Scene::new();
    let serve = |address| ["witness", "serve", "--listen", address];
    for address in ["0.0.0.0:0", "[::]:0"] {
        let refused = scene.expect(1, "s", &serve(address));
        assert!(refused.stderr.contains("--public"), "{refused:?}");
    }
    for address in ["", "127.0.0.1", "here\u{1b}[31m:1", "127.0.0.1:99999"] {
        let refused = scene.expect(1, "s", &serve(address));
        assert!(is_harmless(&refused.stderr), "{refused:?}");
    }
    assert!(!scene.at("s").exists());
    let public = scene.witness("s", &["--listen", "0.0.0.0:0", "--public"]);
    assert!(public.address().starts_with("0.0.0.0:"));
    // A port in use, and a folder in use.
    let port = public.address().replace("0.0.0.0", "127.0.0.1");
    let used = scene.expect(4, "t", &serve(&port));
    assert!(used.stderr.starts_with("error: cannot listen on `127.0.0.1:"), "{used:?}");
    let shared = scene.expect(4, "s", &serve("127.0.0.1:0"));
    assert!(shared.stderr.starts_with("error: another witness uses `"), "{shared:?}");
}

#[test]
fn each_request_is_a_harmless_line() {
    let scene = Scene::new();
    for quiet in [false, true] {
        let mut command =
            scene.command("s", &["witness", "serve", "--listen", "127.0.0.1:0", "--accept-new"]);
        if quiet {
            command.arg("--quiet");
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let listening = said.next().unwrap().unwrap();
        let address = listening.strip_prefix("Listening: http://").unwrap();
        assert!(said.next().unwrap().unwrap().starts_with("Key: wardkeep-witness/"));
        for request in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET /\u{9b}31m\u{202e} HTTP/1.1\r\n\r\n",
            "\u{1b}[31m\r\n\r\n",
        ] {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let mut lines = String::new();
        child.stderr.take().unwrap().read_to_string(&mut lines).unwrap();
        assert!(is_harmless(&lines), "{lines:?}");
        assert_eq!(lines.lines().count(), if quiet { 0 } else { 3 }, "{lines:?}");
        assert!(quiet || lines.contains(" GET / 200\n"), "{lines:?}");
    }
}

#[test]
fn it_ends_when_it_is_told_to_and_goes_on_where_it_was() {
    let scene = Scene::new();
    scene.grow("a", 3);
    let place = |witness: &crate::state::Witness| [witness.url(), witness.key()].map(str::to_owned);
    let witness = scene.witness("w", &["--accept-new"]);
    let address = witness.address().to_owned();
    let [url, key] = place(&witness);
    let add = ["evidence", "anchor", "add", "w", "--witness", &url, "--key", &key];
    scene.expect(0, "a", &add);
    scene.expect(0, "a", &["evidence", "anchor", "push"]);
    scene.copy("a", "old");
    let origin = fs::read_dir(scene.at("w/witness")).unwrap().count();
    assert_eq!(origin, 4, "key, name, lock and one log");
    drop(witness);
    // A log it has learned is known without --accept-new.
    let witness = scene.witness("w", &["--listen", &address]);
    scene.grow("a", 2);
    scene.expect(0, "a", &["evidence", "anchor", "push"]);
    drop(witness);
    let _witness = scene.witness("w", &["--listen", &address]);
    scene.grow("old", 1);
    scene.expect(2, "old", &["evidence", "anchor", "push"]);
}
