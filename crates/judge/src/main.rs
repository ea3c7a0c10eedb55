//! The kernel as judge, as a command: measures the kernel, and writes the page that
//! holds the simulator to it. `make kernel-guest`, `make kernel-native` and `make
//! kernel-page` call it.

#[cfg(target_os = "linux")]
mod command;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    command::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    println!("SKIP the kernel as judge: that takes Linux");
    ExitCode::SUCCESS
}
