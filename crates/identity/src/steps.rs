//! Places at which a process can end.

/// Told of each step that leaves something on disk, before it is taken. Tests end the process there.
pub trait Steps: Sync {
    /// The next step.
    fn step(&self, name: &'static str);
}

/// Every step is taken.
#[derive(Debug, Clone, Copy)]
pub struct Uninterrupted;

impl Steps for Uninterrupted {
    fn step(&self, _: &'static str) {}
}
