//! Archives inside a skill, unpacked in memory within its limits.

use std::io::Read;

use flate2::read::MultiGzDecoder;

use super::kind::{Format, Kind, kind};
use super::tree::{Content, Entry, Limits, Tree, leads_out};

/// What unpacking came upon, beside files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Oddity {
    /// A part of an archive is locked with a password.
    Locked(String),
    /// A name in an archive leads out of where it is unpacked.
    LeadsOut(String, String),
}

/// Adds what lies in archives to the tree, archives in archives too.
pub(super) fn unpack(tree: &mut Tree, limits: &Limits) -> Vec<Oddity> {
    let mut oddities = Vec::new();
    let mut budget = limits.bytes.saturating_sub(tree.bytes());
    let mut next = 0;
    while next < tree.entries.len() {
        let entry = &tree.entries[next];
        next += 1;
        let Content::File(bytes) = &entry.content else { continue };
        let Kind::Archive(format) = kind(&entry.path, bytes) else { continue };
        let path = entry.path.clone();
        if path.matches("!/").count() >= limits.nesting {
            tree.gap(path, "archives lie too deep in archives");
            continue;
        }
        let mut unpacker = Unpacker {
            path,
            out: Tree::default(),
            oddities: &mut oddities,
            budget: &mut budget,
            limits,
        };
        let room = limits.files.saturating_sub(tree.entries.len());
        match format {
            Format::Zip => unpacker.zip(bytes, room),
            Format::Gzip => unpacker.gzip(bytes),
            Format::Tar => unpacker.tar(bytes, room),
            Format::Other(_) => {
                unpacker.out.gap(unpacker.path.clone(), "an archive of a kind that is not unpacked")
            }
        }
        let out = unpacker.out;
        tree.entries.extend(out.entries);
        tree.gaps.extend(out.gaps);
        tree.gaps.truncate(64);
    }
    oddities
}

struct Unpacker<'a> {
    path: String,
    out: Tree,
    oddities: &'a mut Vec<Oddity>,
    budget: &'a mut usize,
    limits: &'a Limits,
}

impl Unpacker<'_> {
    fn read(&mut self, name: &str, from: impl Read) -> Option<Vec<u8>> {
        let most = (*self.budget).min(self.limits.file);
        let mut bytes = Vec::new();
        let done = from.take(most as u64 + 1).read_to_end(&mut bytes);
        *self.budget = self.budget.saturating_sub(bytes.len());
        let why = match done {
            Err(_) => "a part of an archive is damaged",
            Ok(_) if bytes.len() > most => "an archive holds more than is read",
            Ok(_) => return Some(bytes),
        };
        self.out.gap(format!("{}!/{name}", self.path), why);
        // What there is of it is judged all the same.
        bytes.truncate(most);
        (!bytes.is_empty()).then_some(bytes)
    }

    fn add(&mut self, name: &str, content: Content) {
        let name: String = name.replace('\\', "/");
        if leads_out("", &name) {
            self.odd(Oddity::LeadsOut(self.path.clone(), name.clone()));
        }
        if let Content::Link(target) = &content
            && leads_out(&name, target)
        {
            self.odd(Oddity::LeadsOut(self.path.clone(), target.clone()));
        }
        self.out.entries.push(Entry {
            path: format!("{}!/{name}", self.path),
            content,
            executable: false,
        });
    }

    fn odd(&mut self, oddity: Oddity) {
        if self.oddities.len() < 32 {
            self.oddities.push(oddity);
        }
    }

    fn zip(&mut self, bytes: &[u8], room: usize) {
        let Ok(mut archive) = zip::ZipArchive::new(std::io::Cursor::new(bytes)) else {
            self.out.gap(self.path.clone(), "a damaged archive");
            return;
        };
        if archive.len() > room {
            self.out.gap(self.path.clone(), "an archive holds more files than are read");
        }
        for index in 0..archive.len().min(room) {
            let (name, locked, folder, link) = match archive.by_index_raw(index) {
                Ok(file) => (
                    String::from_utf8_lossy(file.name_raw()).into_owned(),
                    file.encrypted(),
                    file.is_dir(),
                    file.is_symlink(),
                ),
                Err(_) => {
                    self.out.gap(self.path.clone(), "a part of an archive is damaged");
                    continue;
                }
            };
            if locked {
                self.odd(Oddity::Locked(format!("{}!/{name}", self.path)));
                self.out.gap(format!("{}!/{name}", self.path), "locked with a password");
                continue;
            }
            if folder {
                continue;
            }
            let Ok(file) = archive.by_index(index) else {
                self.out.gap(format!("{}!/{name}", self.path), "packed in a way that is not known");
                continue;
            };
            if let Some(bytes) = self.read(&name, file) {
                let content = if link {
                    Content::Link(String::from_utf8_lossy(&bytes).into_owned())
                } else {
                    Content::File(bytes)
                };
                self.add(&name, content);
            }
            if *self.budget == 0 {
                self.out.gap(self.path.clone(), "an archive holds more than is read");
                return;
            }
        }
    }

    fn gzip(&mut self, bytes: &[u8]) {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let inner = match name.strip_suffix(".tgz") {
            Some(stem) => format!("{stem}.tar"),
            None => name.strip_suffix(".gz").unwrap_or("content").to_owned(),
        };
        if let Some(bytes) = self.read(&inner, MultiGzDecoder::new(bytes)) {
            self.add(&inner, Content::File(bytes));
        }
    }

    fn tar(&mut self, bytes: &[u8], room: usize) {
        let mut at = 0;
        let mut count = 0;
        let mut long: Option<String> = None;
        while let Some(header) = bytes.get(at..at + 512) {
            if header.iter().all(|byte| *byte == 0) {
                return;
            }
            let size = octal(&header[124..136]);
            let body = at + 512;
            let Some(content) = size.and_then(|size| bytes.get(body..body.checked_add(size)?))
            else {
                self.out.gap(self.path.clone(), "a damaged archive");
                return;
            };
            at = body + content.len().next_multiple_of(512);
            let (prefix, name) = (text(&header[345..500]), text(&header[..100]));
            let name = match long.take() {
                Some(long) => long,
                None if prefix.is_empty() => name,
                None => format!("{prefix}/{name}"),
            };
            count += 1;
            if count > room || *self.budget < content.len() {
                self.out.gap(self.path.clone(), "an archive holds more than is read");
                return;
            }
            match header[156] {
                b'L' => long = Some(text(content)),
                b'x' => long = pax_path(content),
                b'1' | b'2' => self.add(&name, Content::Link(text(&header[157..257]))),
                b'0' | 0 | b'7' => {
                    *self.budget -= content.len();
                    if content.len() > self.limits.file {
                        self.out
                            .gap(format!("{}!/{name}", self.path), "a file is larger than is read");
                    }
                    let most = content.len().min(self.limits.file);
                    self.add(&name, Content::File(content[..most].to_vec()));
                }
                _ => {}
            }
        }
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn octal(bytes: &[u8]) -> Option<usize> {
    let digits = text(bytes);
    usize::from_str_radix(digits.trim(), 8).ok()
}

/// The name that an extended header gives to what follows.
fn pax_path(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().find_map(|line| line.split_once(" path=").map(|(_, name)| name.to_owned()))
}
