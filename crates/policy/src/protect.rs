//! Files that an agent may not write, and a state directory that it may not read.
//!
//! A pure decision on facts: whoever asks has resolved the path first (`monitor::resolve`), and a
//! path that cannot be resolved is denied. A file is recognised by what it is (device and inode,
//! so that hard links and bind mounts are no way around) and by what it would be called there
//! (folded, so that another case, full-width letters, trailing dots or spaces are none either).
//!
//! [`judge_command`] asks the same for everything that a shell command would do. It is a
//! heuristic: what a program does with its input cannot be read off a command line. Only the
//! confinement of `wardkeep run` and files of another owner are a boundary.

mod command;
mod facts;
mod lists;
mod set;

pub use command::{
    CommandJudgement, Hit, Level, MAX_TOUCHED, Resolve, Surroundings, Touch, judge_command,
};
pub use facts::{FileKind, Identity, PathFacts, Readings};
pub use lists::{
    DEFAULT_PROTECT, ProtectLists, SETTINGS_ELSEWHERE, SETTINGS_IN_FOLDERS, STAGING_FOLDER,
    TOOL_LEVEL_PROTECTED,
};
pub use set::{Class, Denial, Judgement, Operation, ProtectedSet, Redirect};
pub use wardkeep_detect::names::{fold_name, folded_components};
pub use wardkeep_detect::shell::pattern_matches as glob_matches;
