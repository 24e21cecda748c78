//! Whether the way to a file holds: a directory that the agent can rename takes everything below it
//! along, locks or no locks.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, StatxAttributes, StatxFlags, Uid, openat, statx,
};
use rustix::io::Errno;
use serde::Serialize;

/// More directories than this are not a path that anybody uses.
const MAX_DEPTH: usize = 256;

/// Who the agent is to the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its user.
    pub uid: Uid,
    /// Its groups, the primary one among them.
    pub groups: Vec<Gid>,
}

/// One step of the way to a file, and whether the agent can put another one in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Anchor {
    /// The directory, or the file at the end.
    pub path: PathBuf,
    /// Whether the agent can neither rename nor remove it.
    pub holds: bool,
    /// Why it holds, or does not.
    pub why: Why,
}

/// Why a step holds, or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// It is `/`.
    Top,
    /// It is immutable itself.
    Immutable,
    /// The directory that it is in is immutable.
    InImmutable,
    /// It is where a file system is mounted.
    Mounted,
    /// The directory that it is in cannot be written by the agent.
    NotWritable,
    /// The directory that it is in is sticky, and neither of the two is the agent's.
    Sticky,
    /// The agent is root.
    AgentIsRoot,
    /// The directory that it is in is the agent's own.
    OwnDirectory,
    /// The agent can write the directory that it is in.
    Writable,
    /// An access list may let the agent write the directory that it is in.
    AccessList,
    /// It is the agent's own, in a sticky directory that the agent can write.
    OwnInSticky,
    /// It is a link, or missing: whatever is there can be another thing tomorrow.
    NotThere,
}

impl Why {
    /// In words, to be read after "it holds: " or "it does not hold: ".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Top => "it is the top of the file system",
            Self::Immutable => "it is immutable",
            Self::InImmutable => "the directory it is in is immutable",
            Self::Mounted => "a file system is mounted there",
            Self::NotWritable => "the agent cannot write the directory it is in",
            Self::Sticky => "the directory it is in is sticky and neither is the agent's",
            Self::AgentIsRoot => "the agent is root",
            Self::OwnDirectory => "the directory it is in is the agent's",
            Self::Writable => "the agent can write the directory it is in",
            Self::AccessList => "an access list may let the agent write the directory it is in",
            Self::OwnInSticky => "it is the agent's own",
            Self::NotThere => "it is a link or missing",
        }
    }

    fn holds(self) -> bool {
        match self {
            Self::Top
            | Self::Immutable
            | Self::InImmutable
            | Self::Mounted
            | Self::NotWritable
            | Self::Sticky => true,
            Self::AgentIsRoot
            | Self::OwnDirectory
            | Self::Writable
            | Self::AccessList
            | Self::OwnInSticky
            | Self::NotThere => false,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.words())
    }
}

/// Every step of the way to `path`, from `/` on, with whether the agent could rename or remove it.
///
/// The way holds if all of them do. What is said is about the kernel's rules for users, groups, sticky
/// directories, immutable files and mounts; capabilities of the agent and other security modules
/// are not asked.
///
/// # Errors
///
/// The path is not absolute, has a `..`, is too deep, or a step cannot be looked at.
pub fn anchors(path: &Path, agent: &Agent) -> io::Result<Vec<Anchor>> {
    let invalid = |text| io::Error::new(io::ErrorKind::InvalidInput, text);
    let mut components = path.components();
    if components.next() != Some(Component::RootDir) {
        return Err(invalid("the path is not absolute"));
    }
    let name = |component: Component<'_>| match component {
        Component::Normal(name) => Ok(name.to_owned()),
        _ => Err(invalid("the path has `..` in it")),
    };
    let names = components.map(name).collect::<io::Result<Vec<OsString>>>()?;
    if names.len() > MAX_DEPTH {
        return Err(invalid("the path is too deep"));
    }
    let mut handle = rustix::fs::open("/", LOOK, Mode::empty())?;
    let mut parent = Step::of(&handle)?;
    let mut so_far = PathBuf::from("/");
    let mut anchors = vec![anchor(&so_far, Why::Top)];
    for (number, name) in names.iter().enumerate() {
        so_far.push(name);
        let (next, step) = match openat(&handle, name, LOOK, Mode::empty()) {
            Ok(next) => {
                let step = Step::of(&next)?;
                (next, step)
            }
            Err(Errno::NOENT | Errno::NOTDIR) => {
                anchors.push(anchor(&so_far, Why::NotThere));
                break;
            }
            Err(errno) => return Err(errno.into()),
        };
        let is_last = number + 1 == names.len();
        let fits = match step.kind {
            FileType::Directory => true,
            FileType::RegularFile => is_last,
            _ => false,
        };
        if !fits {
            anchors.push(anchor(&so_far, Why::NotThere));
            break;
        }
        anchors.push(anchor(&so_far, judge(&parent, &step, agent)));
        (handle, parent) = (next, step);
    }
    Ok(anchors)
}

const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn anchor(path: &Path, why: Why) -> Anchor {
    Anchor { path: path.to_owned(), holds: why.holds(), why }
}

/// What counts of a directory or file.
#[derive(Debug, Clone)]
struct Step {
    kind: FileType,
    mode: u32,
    uid: u32,
    gid: u32,
    is_immutable: bool,
    is_mounted: bool,
    has_access_list: bool,
}

impl Step {
    fn of(handle: &OwnedFd) -> io::Result<Self> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
        let seen = statx(handle, c"", flags, StatxFlags::BASIC_STATS)?;
        let mode = u32::from(seen.stx_mode);
        Ok(Self {
            kind: FileType::from_raw_mode(mode),
            mode: mode & 0o7777,
            uid: seen.stx_uid,
            gid: seen.stx_gid,
            is_immutable: seen.stx_attributes.contains(StatxAttributes::IMMUTABLE),
            is_mounted: seen.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
            has_access_list: has_access_list(handle),
        })
    }
}

/// Whether there is an access list beside the mode. Where that cannot be told there might be one.
fn has_access_list(handle: &OwnedFd) -> bool {
    use std::os::fd::AsRawFd as _;
    // A handle made only for looking takes no attribute calls; its name under /proc does.
    let name = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let mut buffer = [0_u8; 0];
    match rustix::fs::getxattr(name, c"system.posix_acl_access", &mut buffer) {
        Ok(_) | Err(Errno::RANGE) => true,
        Err(Errno::NODATA | Errno::OPNOTSUPP) => false,
        Err(_) => true,
    }
}

/// Whether the agent can take `step` out of `parent`.
fn judge(parent: &Step, step: &Step, agent: &Agent) -> Why {
    let uid = agent.uid.as_raw();
    if agent.uid.is_root() {
        return Why::AgentIsRoot;
    }
    if step.is_immutable {
        return Why::Immutable;
    }
    if parent.is_immutable {
        return Why::InImmutable;
    }
    // An owner can give itself any right.
    if parent.uid == uid {
        return if step.is_mounted { Why::Mounted } else { Why::OwnDirectory };
    }
    let can_write = |bits: u32| bits & 0o3 == 0o3;
    let is_in_group = agent.groups.iter().any(|group| group.as_raw() == parent.gid);
    let bits = if is_in_group { parent.mode >> 3 } else { parent.mode };
    let why = if can_write(bits) {
        Why::Writable
    } else if parent.has_access_list && can_write(parent.mode >> 3) {
        // With a list, the bits of the group are the most that any name on it has.
        Why::AccessList
    } else {
        return Why::NotWritable;
    };
    match (parent.mode & 0o1000 != 0, step.uid == uid) {
        (true, false) => Why::Sticky,
        _ if step.is_mounted => Why::Mounted,
        (true, true) => Why::OwnInSticky,
        (false, _) => why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(mode: u32, uid: u32, gid: u32) -> Step {
        Step {
            kind: FileType::Directory,
            mode,
            uid,
            gid,
            is_immutable: false,
            is_mounted: false,
            has_access_list: false,
        }
    }

    fn agent() -> Agent {
        Agent { uid: Uid::from_raw(1000), groups: vec![Gid::from_raw(1000), Gid::from_raw(50)] }
    }

    #[test]
    fn a_step_is_judged_by_the_rules_of_the_kernel() {
        let of_root = step(0o755, 0, 0);
        let of_agent = step(0o755, 1000, 1000);
        let immutable = |step: &Step| Step { is_immutable: true, ..step.clone() };
        let mounted = |step: &Step| Step { is_mounted: true, ..step.clone() };
        let listed = |step: Step| Step { has_access_list: true, ..step };
        let cases = [
            (of_root.clone(), of_agent.clone(), Why::NotWritable),
            (of_agent.clone(), of_root.clone(), Why::OwnDirectory),
            (step(0o555, 1000, 1000), of_root.clone(), Why::OwnDirectory),
            (of_agent.clone(), immutable(&of_root), Why::Immutable),
            (immutable(&of_agent), of_root.clone(), Why::InImmutable),
            (of_agent.clone(), mounted(&of_root), Why::Mounted),
            (step(0o775, 0, 50), of_root.clone(), Why::Writable),
            (step(0o775, 0, 51), of_root.clone(), Why::NotWritable),
            (step(0o757, 0, 50), of_root.clone(), Why::NotWritable),
            (step(0o757, 0, 51), of_root.clone(), Why::Writable),
            // To make or remove an entry a directory must be searched too.
            (step(0o772, 0, 51), of_root.clone(), Why::NotWritable),
            (step(0o1775, 0, 50), of_root.clone(), Why::Sticky),
            (step(0o1777, 0, 0), of_root.clone(), Why::Sticky),
            (step(0o1777, 0, 0), of_agent.clone(), Why::OwnInSticky),
            (step(0o1777, 1000, 0), of_root.clone(), Why::OwnDirectory),
            (listed(step(0o770, 0, 0)), of_root.clone(), Why::AccessList),
            (listed(step(0o750, 0, 0)), of_root.clone(), Why::NotWritable),
            (listed(step(0o1770, 0, 0)), of_root.clone(), Why::Sticky),
        ];
        for (parent, child, why) in cases {
            assert_eq!(judge(&parent, &child, &agent()), why, "{parent:?} {child:?}");
        }
        let root = Agent { uid: Uid::ROOT, groups: Vec::new() };
        assert_eq!(judge(&of_root, &immutable(&of_root), &root), Why::AgentIsRoot);
    }

    #[test]
    fn a_path_that_leads_up_or_is_relative_is_refused() {
        for path in ["relative", "", "/a/../b", "/usr/../etc"] {
            assert!(anchors(Path::new(path), &agent()).is_err(), "{path}");
        }
        let deep = format!("/{}", "a/".repeat(300));
        assert!(anchors(Path::new(&deep), &agent()).is_err());
    }

    #[test]
    fn what_is_missing_does_not_hold() {
        let found = anchors(Path::new("/no-such-directory/x/y"), &agent()).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].why, Why::NotThere);
        assert!(!found[1].holds);
    }
}
