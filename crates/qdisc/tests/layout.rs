//! Words of parameters and statistics have the same places here and in the programs.

use tidegate_qdisc::layout::{DELAY_STEPS, LEVEL_WORDS, LEVELS, PARAMETERS, STATISTICS};

/// The members of a struct of the header, with how often each comes.
fn members(of: &str) -> Vec<(String, String)> {
    let header = include_str!("../../../bpf/parameters.h");
    let (_, rest) = header.split_once(&format!("struct {of} {{\n")).expect("it is there");
    let (body, _) = rest.split_once("\n};").expect("it ends");
    let member = |line: &str| {
        let name = line.trim().strip_prefix("u64 ")?.strip_suffix(';')?;
        let (name, times) = name.split_once('[').unwrap_or((name, "1]"));
        Some((name.into(), times.trim_end_matches(']').into()))
    };
    body.lines().filter_map(member).collect()
}

#[test]
fn the_words_are_those_of_the_programs() {
    let once = |names: &[&str]| names.iter().map(|name| ((*name).into(), "1".into())).collect();
    let expected: Vec<(String, String)> = once(&PARAMETERS);
    assert_eq!(members("parameters"), expected);
    let mut expected: Vec<(String, String)> = once(&STATISTICS);
    expected.extend(LEVEL_WORDS.map(|name| (name.into(), "LEVELS".into())));
    expected.push(("delays".into(), "LEVELS * DELAY_STEPS".into()));
    assert_eq!(members("statistics"), expected);
    let header = include_str!("../../../bpf/parameters.h");
    assert!(header.contains(&format!("#define LEVELS {LEVELS}\n")));
    assert!(header.contains(&format!("#define DELAY_STEPS {DELAY_STEPS}\n")));
}
