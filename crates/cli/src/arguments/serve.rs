//! The command line of `tidegate serve`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
#[command(after_help = SERVE_HELP)]
pub(crate) struct ServeArguments {
    /// The folder that has the folders of results in it
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// The port on this machine [default: one that is free]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
}

const SERVE_HELP: &str = "\
Examples:
  tidegate serve                              what the comparisons in this folder have found
  tidegate serve studies --port 8080
  tidegate compare my.toml --serve            the same after a comparison

Only this machine can connect. From another one: ssh -L 8080:127.0.0.1:8080 HOST";
