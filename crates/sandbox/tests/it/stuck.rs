//! A file system that does not answer.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::Command;

use rustix::mount::{MountFlags, UnmountFlags};

use crate::lab::{Lab, NOBODY, is_root, skipped};

/// An empty folder whose server answers until somebody asks for a name in it.
struct Mount<'a>(&'a Path);

impl<'a> Mount<'a> {
    fn new(at: &'a Path) -> Option<Self> {
        let device = File::options().read(true).write(true).open("/dev/fuse").ok()?;
        let data =
            format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", device.as_raw_fd());
        let data = std::ffi::CString::new(data).unwrap();
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount("wk-test", at, "fuse", flags, Some(data.as_c_str())).ok()?;
        std::thread::spawn(move || serve(device));
        Some(Self(at))
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.0, UnmountFlags::DETACH | UnmountFlags::FORCE);
    }
}

/// Numbers of the kernel's own list.
const LOOKUP: u32 = 1;
const GETATTR: u32 = 3;
const STATFS: u32 = 17;
const INIT: u32 = 26;
const OPENDIR: u32 = 27;
const READDIR: u32 = 28;
const RELEASEDIR: u32 = 29;

fn serve(mut device: File) {
    let mut room = vec![0; 1 << 17];
    while let Ok(length) = device.read(&mut room) {
        let word = |at: usize| u32::from_ne_bytes(room[at..at + 4].try_into().unwrap());
        assert!(length >= 40);
        let body: Vec<u8> = match word(4) {
            INIT => {
                let mut body = vec![0; 64];
                body[..4].copy_from_slice(&7_u32.to_ne_bytes());
                body[4..8].copy_from_slice(&31_u32.to_ne_bytes());
                // The most that is written at once.
                body[20..24].copy_from_slice(&4096_u32.to_ne_bytes());
                body
            }
            GETATTR => {
                let mut body = vec![0; 16 + 88];
                // The inode, the mode, one link.
                body[16..24].copy_from_slice(&1_u64.to_ne_bytes());
                body[16 + 60..16 + 64].copy_from_slice(&0o40777_u32.to_ne_bytes());
                body[16 + 64..16 + 68].copy_from_slice(&1_u32.to_ne_bytes());
                body
            }
            STATFS => vec![0; 80],
            OPENDIR => vec![0; 16],
            READDIR | RELEASEDIR => Vec::new(),
            // This is the one that is never answered.
            LOOKUP => continue,
            _ => {
                let mut answer = 16_u32.to_ne_bytes().to_vec();
                answer.extend((-libc::ENOSYS).to_ne_bytes());
                answer.extend_from_slice(&room[8..16]);
                let _ = device.write(&answer);
                continue;
            }
        };
        let mut answer = u32::try_from(16 + body.len()).unwrap().to_ne_bytes().to_vec();
        answer.extend(0_i32.to_ne_bytes());
        answer.extend_from_slice(&room[8..16]);
        answer.extend(body);
        let _ = device.write(&answer);
    }
}

#[test]
fn a_file_system_that_does_not_answer_ends_the_run() {
    if !is_root() || !Path::new("/dev/fuse").exists() {
        return skipped("needs root and /dev/fuse for a file system that does not answer");
    }
    let lab = Lab::new(NOBODY);
    let at = lab.at("ws/far");
    fs::create_dir(&at).unwrap();
    lab.give();
    let Some(mount) = Mount::new(&at) else {
        return skipped("needs a file system in user space");
    };
    let name = "wk-stuck-orphan";
    let script = format!(
        "(exec -a {name} sleep 300 &) ; echo before > ok; echo x > far/file; echo after > late"
    );
    let (code, out) = lab.run_with(
        &script,
        &[("WARDKEEP_TEST_PATIENCE", "3000"), ("WARDKEEP_TEST_TIMEOUT", "30000")],
    );
    assert!(code == 124 && out.contains("confine: stuck"), "{code} {out}");
    assert!(lab.at("ws/ok").exists() && !lab.at("ws/late").exists());
    // Whoever waits in the kernel goes when the file system does.
    drop(mount);
    let left = || Command::new("pgrep").args(["-f", &format!("^{name}")]).output().unwrap().stdout;
    assert!(crate::lab::within(|| left().is_empty()));
}
