//! `wardkeep-fake-model`: prints its port, then serves until it is ended.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use wardkeep_fake_model::{Log, Script, Server, Step};

const USAGE: &str = "\
usage: wardkeep-fake-model --log FILE [--port N] [--strict] [STEP]... [--say TEXT]
       wardkeep-fake-model --show FILE
       wardkeep-fake-model --ends FILE RULE TEXT [OTHER]...
       wardkeep-fake-model --shortened FILE

Plays the steps in order, one tool call for each result that the conversation holds, then says TEXT.
Prints the port on its first line. Steps:
  --run COMMAND          a call of the agent's shell tool
  --write PATH CONTENT   a call of the agent's tool that writes a file
  --read PATH            a call of the agent's tool that reads a file
Other:
  --tell                 gives a passage of its instructions away after TEXT
  --swell RESULTS TOKENS says once, of the first conversation with so many results, that it has so many tokens

With --strict it refuses what a real server of that API would refuse.
With --show it prints a log as lines: `called TOOL ARGUMENTS`, `told RESULT`, `said TEXT`.
With --shortened it tells how often a conversation came back with fewer results than before.
With --ends it tells whether every request for a turn ended with words that hold RULE and TEXT and
end with TEXT or with an OTHER, and said so once.
";

fn main() -> ExitCode {
    match serve(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = write!(io::stderr(), "wardkeep-fake-model: {error}\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let mut arguments = arguments.peekable();
    if arguments.next_if(|first| first == "--show").is_some() {
        let log = arguments.next().ok_or("--show needs a value")?;
        return show(&log).map_err(|error| format!("cannot show {log}: {error}"));
    }
    if arguments.next_if(|first| first == "--ends").is_some() {
        let log = arguments.next().ok_or("--ends needs a log")?;
        let rule = arguments.next().ok_or("--ends needs a rule")?;
        let text = arguments.next().ok_or("--ends needs a text")?;
        let log =
            std::fs::read_to_string(&log).map_err(|error| format!("cannot read {log}: {error}"))?;
        let count = wardkeep_fake_model::ends(&log, &rule, &text, &arguments.collect::<Vec<_>>())?;
        return writeln!(io::stdout(), "{count}").map_err(|error| error.to_string());
    }
    if arguments.next_if(|first| first == "--shortened").is_some() {
        let log = arguments.next().ok_or("--shortened needs a log")?;
        let log =
            std::fs::read_to_string(&log).map_err(|error| format!("cannot read {log}: {error}"))?;
        let count = wardkeep_fake_model::shortened(&log);
        return writeln!(io::stdout(), "{count}").map_err(|error| error.to_string());
    }
    let options = Options::parse(arguments)?;
    let log = Log::create(&options.log)
        .map_err(|error| format!("cannot write {}: {error}", options.log.display()))?;
    let bind = if options.strict { Server::bind_strict } else { Server::bind };
    let server = bind(options.port, options.script, log)
        .map_err(|error| format!("cannot listen on 127.0.0.1:{}: {error}", options.port))?;
    let mut out = io::stdout();
    writeln!(out, "{}", server.port())
        .and_then(|()| out.flush())
        .map_err(|error| format!("cannot print the port: {error}"))?;
    server.serve();
    Ok(())
}

fn show(log: &str) -> io::Result<()> {
    let text = std::fs::read_to_string(log)?;
    io::stdout().write_all(wardkeep_fake_model::story(&text).as_bytes())
}

struct Options {
    log: PathBuf,
    port: u16,
    strict: bool,
    script: Script,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut log, mut port, mut script) = (None, 0, Script::default());
        let mut strict = false;
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{option} needs a value"));
            match option.as_str() {
                "--log" => log = Some(PathBuf::from(value()?)),
                "--port" => port = value()?.parse().map_err(|_| "--port needs a number")?,
                "--strict" => strict = true,
                "--run" => script.push(Step::Run(value()?))?,
                "--read" => script.push(Step::Read(value()?))?,
                "--write" => script.push(Step::Write { path: value()?, content: value()? })?,
                "--say" => script.say(value()?),
                "--tell" => script.tell(),
                "--swell" => {
                    let number = |text: String| text.parse().map_err(|_| "--swell needs numbers");
                    let results = number(value()?)?;
                    script.swell(usize::try_from(results).unwrap_or_default(), number(value()?)?);
                }
                _ => return Err(format!("unknown option `{option}`")),
            }
        }
        Ok(Self { log: log.ok_or("--log is needed")?, port, strict, script })
    }
}
