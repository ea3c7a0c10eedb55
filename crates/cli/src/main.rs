//! The `tidegate` command.
//!
//! Results go to standard output and to files, everything else to standard
//! error; a failure is one line there. Exit code 0 is success, 2 a wrong
//! command line or input, 130 an interruption, 1 anything else.

mod answered;
mod arguments;
mod asked;
mod beside;
mod calls;
mod catalogue;
mod compare;
mod comparing;
mod curves;
mod describe;
mod doctor;
mod failure;
mod findings;
mod folder;
mod gateway;
mod gateways;
mod generate;
mod home;
mod inputs;
mod interface;
mod interrupt;
mod kept;
mod link;
mod live_form;
mod measure;
mod measured;
mod moments;
mod output;
mod parts;
mod progress;
mod qdisc;
mod replay;
mod report;
mod reproduce;
mod rights;
mod rows;
mod scenarios;
mod serve;
mod service;
mod sizes;
mod study;
mod summary_csv;
mod sweep;
mod table;

use std::panic;
use std::process::{self, ExitCode};

use clap::Parser;

use arguments::{
    Arguments, Command, GatewayCommand, LinkCommand, MeasureCommand, QdiscCommand, RequestsCommand,
};
use failure::Failure;

fn main() -> ExitCode {
    end_at_faults();
    match Arguments::try_parse().map_err(Failure::from).and_then(|arguments| run(arguments.command))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// A fault ends the whole program instead of one thread: so it is seen, and whoever supervises
/// the program can begin it again. No profile says so, since Python loads the same code and
/// has to survive it.
fn end_at_faults() {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |fault| {
        tell(fault);
        process::abort();
    }));
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Sweep(arguments) => sweep::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Measured(arguments) => measured::run(&arguments),
        Command::Measure { command } => match command {
            MeasureCommand::Run(arguments) => measure::run(&arguments),
            MeasureCommand::Serve(arguments) => measure::serve(&arguments),
            MeasureCommand::Undo(arguments) => measure::undo(&arguments),
            MeasureCommand::Read(arguments) => measure::read(&arguments),
        },
        Command::Curves(arguments) => curves::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Disciplines(arguments) => catalogue::disciplines(&arguments),
        Command::Requests(arguments) => match &arguments.command {
            Some(RequestsCommand::Compare(arguments)) => gateways::run(arguments),
            None => catalogue::requests(&arguments),
        },
        Command::Gateway { command } => match command {
            GatewayCommand::Check(arguments) => gateway::check(&arguments),
            GatewayCommand::Plan(arguments) => gateway::plan(&arguments),
            GatewayCommand::Reload(arguments) => gateway::reload(&arguments),
            GatewayCommand::Status(arguments) => gateway::status(&arguments),
            GatewayCommand::Top(arguments) => gateway::top(&arguments),
            GatewayCommand::Run { file, rules, user } => {
                gateway::run(&file, rules, user.as_deref())
            }
            GatewayCommand::Rules { what } => gateway::rules(&what),
        },
        Command::Link { command } => match command {
            LinkCommand::Plan(arguments) => link::plan(&arguments),
            LinkCommand::Run(arguments) => link::run(&arguments),
            LinkCommand::Set(arguments) => link::set(&arguments),
            LinkCommand::Status(arguments) => link::status(&arguments),
            LinkCommand::Top(arguments) => link::top(&arguments),
            LinkCommand::Stop(arguments) => link::stop(&arguments),
            LinkCommand::Bypass(arguments) => link::bypass(&arguments),
        },
        Command::Qdisc { command } => match command {
            QdiscCommand::Add(arguments) => qdisc::add(&arguments),
            QdiscCommand::Change(arguments) => qdisc::change(&arguments),
            QdiscCommand::Show(arguments) => qdisc::show(&arguments),
            QdiscCommand::Del(arguments) => qdisc::del(&arguments),
        },
        Command::Sizes(arguments) => sizes::run(&arguments),
        Command::Scenarios(arguments) => scenarios::run(&arguments),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man { directory } => generate::manual(&directory),
    }
}
