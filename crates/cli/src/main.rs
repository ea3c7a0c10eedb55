//! The `tidegate` command.

fn main() {}
