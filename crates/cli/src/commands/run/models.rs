//! The model API proxy for a confined program: it listens inside, and the program's base URLs lead to it.

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use wardkeep_gateway::llm::{Config, Monitored, Running, Seen, Upstream, Watch, start};
use wardkeep_monitor::daemon::Starter;
use wardkeep_monitor::monitor::WhoBody;

use super::super::egress::failed;
use super::super::proxy::{plain, told};
use crate::context::Context;
use crate::error::CliError;
use crate::ui::harmless;

/// Where it is found inside.
pub(super) const PORT: u16 = 3129;
/// Lines that are told after the run.
const TOLD: usize = 20;

/// Variables by which agents are pointed at a model API: the variable, the upstream, and what the agents
/// expect behind it.
const BASES: &[(&str, &str, &str)] = &[
    ("ANTHROPIC_BASE_URL", "anthropic", ""),
    ("OPENAI_BASE_URL", "openai", "/v1"),
    ("OPENAI_API_BASE", "openai", "/v1"),
    ("GOOGLE_GEMINI_BASE_URL", "gemini", ""),
    ("OLLAMA_HOST", "ollama", ""),
];

/// Lines on what was refused and withheld.
#[derive(Default)]
struct Lines(Mutex<(Vec<String>, usize)>);

impl Watch for Lines {
    fn seen(&self, seen: &Seen<'_>) {
        for line in told(seen, false) {
            let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.0.len() < TOLD {
                lines.0.push(line);
            } else {
                lines.1 += 1;
            }
        }
    }
}

/// A proxy that is ready, and waits for the socket inside.
pub(super) struct Models {
    config: Config,
    who: WhoBody,
    starter: Starter,
    lines: Arc<Lines>,
}

/// A proxy at work.
pub(super) struct Served {
    running: Running,
    lines: Arc<Lines>,
}

impl Models {
    /// For a program in `workspace`. Base URLs that are set outside say where its requests go on to.
    pub(super) fn new(
        context: &Context,
        state: &Path,
        workspace: &Path,
        upstreams: Vec<Upstream>,
    ) -> Result<Self, CliError> {
        let mut config = plain(context, state, workspace)?;
        // Nobody but the program reaches it, and what it cannot be looked into has no other way.
        config.strict = true;
        for (variable, name, behind) in BASES {
            let set = context.variables().find(|(known, _)| known == variable);
            let Some(url) = set.and_then(|(_, value)| value.into_string().ok()) else { continue };
            let url = url.trim_end_matches('/');
            let base = url.strip_suffix(behind).unwrap_or(url);
            let upstream = Upstream::new(name, base).map_err(|error| {
                CliError::refused(error.to_string(), format!("mend {variable}, or unset it"))
            })?;
            config.add(upstream);
        }
        for upstream in upstreams {
            if upstream.name == "default" {
                // The variables inside name one for each API.
                for (_, name, _) in BASES {
                    config.upstreams.retain(|one| one.name != *name);
                    config.upstreams.extend(Upstream::new(name, &upstream.url()));
                }
            }
            config.add(upstream);
        }
        let lines = Arc::new(Lines::default());
        config.watch = Some(Arc::<Lines>::clone(&lines));
        let who = WhoBody {
            agent: "run".to_owned(),
            session: String::new(),
            workspace: workspace.to_owned(),
            principal: None,
            taint: Vec::new(),
            parents: Vec::new(),
        };
        let mut starter = Starter::new(context.program()?);
        starter.variables = context.daemon_variables();
        Ok(Self { config, who, starter, lines })
    }

    /// Serves on the socket that listens inside.
    pub(super) fn serve(
        self,
        context: &Context,
        state: &Path,
        listener: TcpListener,
    ) -> Result<Served, CliError> {
        let judge = Monitored::daemon(state, self.starter, self.who, context.home());
        let running = start(listener, self.config, Arc::new(judge), 1)
            .map_err(|error| failed("start the proxy of model APIs", &error))?;
        Ok(Served { running, lines: self.lines })
    }
}

impl Served {
    /// Ends it, and tells what was refused.
    pub(super) fn end(self, context: &mut Context) -> Result<(), CliError> {
        let ended = self.running.stop();
        let lines = self.lines.0.lock().unwrap_or_else(PoisonError::into_inner);
        for line in &lines.0 {
            context.ui.note(&harmless(line));
        }
        if lines.1 > 0 {
            context.ui.note(&format!("{} lines more: see `wardkeep log`", lines.1));
        }
        ended.map_err(|error| failed("end the proxy of model APIs", &error))
    }
}

/// What leads programs to it.
pub(super) fn variables() -> Vec<(OsString, OsString)> {
    let url = |name: &str, behind: &str| format!("http://127.0.0.1:{PORT}/{name}{behind}");
    let all = BASES.iter().map(|(variable, name, behind)| (variable, url(name, behind)));
    all.map(|(variable, url)| (variable.into(), url.into())).collect()
}
