//! The commands, one file each: `Args`, whose doc comment is the help, and `run`.

pub(crate) mod aegx;
mod approvals;
mod completions;
mod config;
mod contamination;
mod daemon;
mod demo;
mod detector;
mod doctor;
mod egress;
mod evidence;
pub(crate) mod hook;
pub(crate) mod identity;
pub(crate) mod init;
mod install;
mod log;
mod look;
mod man;
mod marks;
pub(crate) mod md;
mod notifications;
mod notify;
mod prove;
mod proxy;
mod rollback;
mod rules;
pub(crate) mod run;
mod sandbox;
mod scan;
mod serve;
mod skill;
mod snapshot;
mod standing;
pub(crate) mod status;
mod time;
mod top;
mod trust;
mod undo;
mod uninstall;
mod witness;

use clap::Subcommand;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// What `wardkeep` can be asked to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Aegx(aegx::Args),
    Apply(identity::ApplyArgs),
    Approvals(approvals::Args),
    Completions(completions::Args),
    Config(config::Args),
    Contamination(contamination::Args),
    Daemon(daemon::Args),
    Demo(demo::Args),
    Diff(identity::DiffArgs),
    Doctor(doctor::Args),
    Egress(egress::Args),
    Evidence(evidence::Args),
    History(identity::HistoryArgs),
    Hook(hook::Args),
    Init(init::Args),
    Install(install::Args),
    Log(log::Args),
    Man(man::Args),
    #[command(visible_aliases = ["policy", "security"])]
    Md(md::Args),
    Notifications(notifications::Args),
    Notify(notify::Args),
    Protect(identity::ProtectArgs),
    Prove(prove::Args),
    Proxy(proxy::Args),
    Release(identity::ReleaseArgs),
    Reset(identity::ResetArgs),
    Restore(identity::RestoreArgs),
    Rollback(rollback::Args),
    Rules(rules::Args),
    Run(run::Args),
    Sandbox(sandbox::Args),
    Scan(scan::Args),
    Serve(serve::Args),
    Skill(skill::Args),
    Snapshot(snapshot::Args),
    Stage(identity::StageArgs),
    Status(status::Args),
    Sync(identity::SyncArgs),
    Top(top::Args),
    Undo(undo::Args),
    Uninstall(uninstall::Args),
    Watch(identity::WatchArgs),
    Witness(witness::Args),
}

/// Runs a command.
pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    match command {
        Command::Aegx(args) => aegx::run(context, args.command),
        Command::Approvals(args) => approvals::run(context, args),
        Command::Completions(args) => completions::run(context, args),
        Command::Config(args) => config::run(context, args.command),
        Command::Contamination(args) => contamination::run(context, args),
        Command::Daemon(args) => daemon::run(context, args),
        Command::Demo(args) => demo::run(context, args),
        Command::Doctor(args) => doctor::run(context, args),
        Command::Egress(args) => egress::run(context, args),
        Command::Evidence(args) => evidence::run(context, args.command),
        Command::Hook(args) => Ok(hook::run(context, args)),
        Command::Init(args) => init::run(context, args),
        Command::Install(args) => install::run(context, args),
        Command::Log(args) => log::run(context, args),
        Command::Man(args) => man::run(context, args),
        Command::Md(args) => md::run(context, args.command),
        Command::Rules(args) => rules::run(context, args.command),
        Command::Run(args) => run::run(context, args),
        Command::Sandbox(args) => sandbox::run(context, args),
        Command::Rollback(args) => rollback::run(context, args),
        Command::Notifications(args) => notifications::run(context, args),
        Command::Notify(args) => notify::run(context, args),
        Command::Prove(args) => prove::run(context, args),
        Command::Proxy(args) => proxy::run(context, args),
        Command::Serve(args) => serve::run(context, args),
        Command::Scan(args) => scan::run(context, args),
        Command::Skill(args) => skill::run(context, args),
        Command::Snapshot(args) => snapshot::run(context, args.command),
        Command::Apply(args) => identity::apply(context, args),
        Command::Diff(args) => identity::diff(context, args),
        Command::History(args) => identity::history(context, args),
        Command::Protect(args) => identity::protect(context, args),
        Command::Release(args) => identity::release(context, args),
        Command::Reset(args) => identity::reset(context, args),
        Command::Restore(args) => identity::restore(context, args),
        Command::Stage(args) => identity::stage(context, args),
        Command::Status(args) => status::run(context, args),
        Command::Sync(args) => identity::sync(context, args),
        Command::Watch(args) => identity::watch(context, args),
        Command::Top(args) => top::run(context, args),
        Command::Undo(args) => undo::run(context, args),
        Command::Uninstall(args) => uninstall::run(context, args),
        Command::Witness(args) => witness::run(context, args.command),
    }
}
