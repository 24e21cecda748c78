//! What of the machine is shown, for whoever is asked to show more of it.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{Shown, View, lists};
use crate::names::{Guard, Names, folded};

/// Folders of the running system, of which no more is ever shown: what is in them speaks of other processes.
const NEVER: &[&str] = &["/proc", "/sys", "/dev", "/run"];

/// Places of a view, each with whether it is shown as a whole.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shows(BTreeMap<PathBuf, bool>);

impl Shows {
    /// Whether the nearest place at or above a real path is shown as a whole: then what is not there inside is not to be
    /// seen, or not there outside either.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        path.ancestors().find_map(|above| self.0.get(above)) == Some(&true)
    }
}

impl View {
    /// What is shown.
    pub(crate) fn shows(&self) -> Shows {
        let all = self.entries.iter();
        let all = all.map(|(path, entry)| (path.clone(), entry.shown != Shown::Bare));
        let copies = self.copies.keys().map(|path| (path.clone(), true));
        let never = NEVER.iter().map(|path| (PathBuf::from(path), true));
        Shows(all.chain(copies).chain(never).collect())
    }
}

/// Whether a real path is one of those that hold keys, logins and histories, in any home and in any case of letters: in
/// a copy of a home, or by another mount of it, they are what they were.
pub(crate) fn is_credential(path: &Path) -> bool {
    let whole = folded(path.as_os_str().as_bytes());
    let below = |list: &[u8], text: &[u8]| {
        text.strip_prefix(list).is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
    };
    let in_home =
        |text: &[u8]| lists::SECRETS.iter().any(|name| below(&folded(name.as_bytes()), text));
    let starts = whole.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    starts.map(|(at, _)| &whole[at + 1..]).any(in_home)
        || lists::MACHINE_SECRETS.iter().any(|name| below(name.as_bytes(), &whole))
        || Names::standard().of_path(&whole) == Some(Guard::Masked)
}

/// The same, in this home, to be looked at: each may be a link to somewhere else.
pub(crate) fn secrets_of(home: Option<&Path>) -> Vec<PathBuf> {
    home.into_iter().flat_map(|home| lists::SECRETS.iter().map(|name| home.join(name))).collect()
}

/// Whether a file's own name says that it may hold a secret.
#[must_use]
pub fn sounds_secret(path: &Path) -> bool {
    let name = path.file_name().map(|name| folded(name.as_bytes())).unwrap_or_default();
    let holds = |word: &&&str| name.windows(word.len()).any(|some| some == word.as_bytes());
    lists::SECRET_WORDS.iter().find(holds).is_some()
        || lists::SECRET_ENDINGS.iter().any(|end| name.ends_with(end.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_wherever_a_home_lies() {
        for (path, expected) in [
            ("/home/me/.ssh/id_ed25519", true),
            ("/home/me/.SSH/config", true),
            ("/mnt/backup/home/me/.aws/credentials", true),
            ("/root/.bash_history", true),
            ("/home/me/.config/gh/hosts.yml", true),
            ("/home/me/.local/share/fish/fish_history", true),
            ("/home/me/.config/containers/auth.json", true),
            ("/home/me/.var/app/com.google.Chrome/config/x", true),
            ("/home/me/.fly/config.yml", true),
            ("/etc/shadow", true),
            ("/etc/ssh/ssh_host_rsa_key", true),
            ("/srv/app/.env", true),
            ("/home/me/.sshx/a", false),
            ("/home/me/notes.txt", false),
            ("/home/me/.config/ghost", false),
            ("/etc/shadows", false),
        ] {
            assert_eq!(is_credential(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn names_that_sound_like_a_secret() {
        for (path, expected) in [
            ("/a/server.PEM", true),
            ("/a/my passwords.txt", true),
            ("/a/id_rsa.old", true),
            ("/a/notes.txt", false),
            ("/secret/notes.txt", false),
        ] {
            assert_eq!(sounds_secret(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn the_nearest_place_counts() {
        let places = [("/home/me", false), ("/home/me/.cache", true), ("/usr", true)];
        let shows = Shows(places.iter().map(|(path, whole)| (path.into(), *whole)).collect());
        for (path, expected) in [
            ("/home/me/notes.txt", false),
            ("/home/me/.cache/x", true),
            ("/usr/lib/x", true),
            ("/var/log/x", false),
            ("/", false),
        ] {
            assert_eq!(shows.covers(Path::new(path)), expected, "{path}");
        }
    }
}
