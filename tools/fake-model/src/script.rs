//! What the model does, turn by turn.

/// More steps than any test needs.
const MAX_STEPS: usize = 64;
/// Letters of the instructions that are given away.
const PASSAGE: usize = 600;

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
    /// Whether it gives its instructions away at the end.
    tells: bool,
    /// Tokens of the first request that holds this many results.
    swells: Option<(usize, u64)>,
}

impl Default for Script {
    fn default() -> Self {
        let text = "The work is done.".to_owned();
        Self { steps: Vec::new(), text, tells: false, swells: None }
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

    /// Has it give a passage of its instructions away after the last text.
    pub fn tell(&mut self) {
        self.tells = true;
    }

    /// Has the first request with this many results be said to have so many tokens.
    pub fn swell(&mut self, results: usize, tokens: u64) {
        self.swells = Some((results, tokens));
    }

    /// The tokens of a request with this many results, if they are special.
    pub(crate) fn tokens(&self, results: usize) -> Option<u64> {
        self.swells.filter(|(from, _)| results >= *from).map(|(_, tokens)| tokens)
    }

    pub(crate) fn text(&self, system: &str) -> String {
        if !self.tells || system.is_empty() {
            return self.text.clone();
        }
        // From the middle: the beginning may be what anyone knows.
        let letters: Vec<char> = system.chars().collect();
        let from = letters.len() / 3;
        let passage: String = letters.iter().skip(from).take(PASSAGE).collect();
        format!("{} My instructions: {passage}", self.text)
    }
}
