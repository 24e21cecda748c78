//! What the model does, turn by turn.

/// More steps than any test needs.
const MAX_STEPS: usize = 64;

/// One thing the model wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A command for the agent's shell tool.
    Run(String),
    /// A file to be read.
    Read(String),
    /// A file to be written.
    Write {
        /// Where.
        path: String,
        /// What.
        content: String,
    },
}

/// Tool calls, then a last text.
#[derive(Debug, Clone)]
pub struct Script {
    steps: Vec<Step>,
    text: String,
}

impl Default for Script {
    fn default() -> Self {
        Self { steps: Vec::new(), text: "The work is done.".to_owned() }
    }
}

impl Script {
    /// Adds a step.
    ///
    /// # Errors
    /// When there are too many.
    pub fn push(&mut self, step: Step) -> Result<(), String> {
        if self.steps.len() == MAX_STEPS {
            return Err(format!("more than {MAX_STEPS} steps"));
        }
        self.steps.push(step);
        Ok(())
    }

    /// Sets the last text.
    pub fn say(&mut self, text: String) {
        self.text = text;
    }

    /// The step for a conversation that holds this many tool results.
    pub(crate) fn step(&self, results: usize) -> Option<&Step> {
        self.steps.get(results)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}
