//! Which files are refused, with which messages, and which files are equal.

use std::fmt::Write as _;

use super::*;

/// A correct file, in which tests spoil one thing.
const RIGHT: &str = r#"link = "10 Mbit/s"
largest_packet = "1536 B"
[[real_time]]
name = "voice"
class = 1
curve = "100 B + 2 Mbit/s, 300 B + 1.2 Mbit/s"
deadline = "5 ms"
[[best_effort]]
name = "ftp"
protocol = "tcp"
port = 20
weight = 5
[[real_time]]
name = "video"
from = "2001:db8::7"
tspec = { packet = "1536 B", peak = "6.4 Mbit/s", burst = "15 kB", rate = "4.8 Mbit/s" }
deadline = "30 ms"
"#;

fn parsed(text: &str) -> Result<Contracts, String> {
    parse("f.toml", text).map_err(|error| error.to_string())
}

#[test]
fn a_file_says_the_same_as_a_line_of_text() {
    let line = "link 10 Mbit/s; packets to 1536 B; \
                voice = class 1: 100 B + 2 Mbit/s, 300 B + 1.2 Mbit/s within 5 ms; \
                ftp = tcp and port 20: weight 5; \
                video = from 2001:db8::7: 1536 B + 6.4 Mbit/s, 15 kB + 4.8 Mbit/s within 30 ms";
    assert_eq!(parsed(RIGHT), Ok(line.parse().unwrap()));
}

#[test]
fn what_is_left_out_has_its_default() {
    assert_eq!(parsed("link = \"1 Mbit/s\""), Ok("link 1 Mbit/s".parse().unwrap()));
}

#[test]
fn mistakes_are_told_with_their_place() {
    let many: String = (0..260)
        .map(|index| format!("[[best_effort]]\nname = \"{index}\"\nport = 9\nweight = 1\n"))
        .collect();
    let many = format!("{many}[[best_effort]]");
    let mut table = String::new();
    for (right, wrong) in [
        ("link = \"10 Mbit/s\"\n", ""),
        ("link = \"10 Mbit/s\"", "link = 10"),
        ("link = \"10 Mbit/s\"", "lnik = \"10 Mbit/s\""),
        ("link = \"10 Mbit/s\"", "link = \"0 Mbit/s\""),
        ("largest_packet = \"1536 B\"", "largest_packet = \"2 MiB\""),
        ("[[real_time]]", "[[realtime]]"),
        ("[[real_time]]", "[real_time]"),
        ("name = \"voice\"\n", ""),
        ("name = \"voice\"", "name = \"ftp\""),
        ("name = \"voice\"", "name = \"a=b\""),
        ("name = \"voice\"", "name = \"a\\nb\""),
        ("name = \"voice\"", "name = \"\""),
        ("class = 1\n", ""),
        ("class = 1", "class = 65536"),
        ("protocol = \"tcp\"", "protocol = \"tpc\""),
        ("protocol = \"tcp\"", "protocol = 256"),
        ("port = 20", "port = 0"),
        ("from = \"2001:db8::7\"", "from = \"example.net\""),
        ("curve = \"100 B + 2 Mbit/s, 300 B + 1.2 Mbit/s\"\n", ""),
        ("curve = \"100 B + 2 Mbit/s, 300 B", "curve = \"100 B + 2 Mbit/s, 300\\n"),
        ("curve = \"100 B", "curve = \"0 B"),
        ("tspec = {", "curve = \"1 B + 1 kbit/s\"\ntspec = {"),
        ("peak = \"6.4 Mbit/s\"", "paek = \"6.4 Mbit/s\""),
        ("burst = \"15 kB\"", "burst = \"0 B\""),
        ("deadline = \"5 ms\"\n", ""),
        ("deadline = \"5 ms\"", "deadline = \"0 ms\""),
        ("deadline = \"5 ms\"", "deadline = \"2 h\""),
        ("weight = 5\n", ""),
        ("weight = 5", "weight = 0"),
        ("[[best_effort]]", &many),
    ] {
        let spoilt = RIGHT.replacen(right, wrong, 1);
        assert_ne!(spoilt, RIGHT, "{right}");
        let error = parsed(&spoilt).expect_err(wrong);
        assert_eq!(error.lines().count(), 1, "{error}");
        let shown = if wrong.is_empty() { format!("without {right}") } else { wrong.into() };
        let shown: String = shown.trim_end().replace('\n', " ; ").chars().take(60).collect();
        writeln!(table, "{shown}\n  {error}").unwrap();
    }
    insta::with_settings!({ omit_expression => true }, {
        insta::assert_snapshot!("mistakes", table);
    });
}
