//! The text formats: flow logs, HTTP logs, page loads, delivery traces.

use proptest::prelude::*;
use tidegate_core::{Bytes, Rate, Span, Time};
use tidegate_sim::trace::{
    DeliveryTrace, FlowLog, FrameTrace, HttpLog, HttpVersion, LoggedFlow, PageLoads, PageRequest,
    ReadError,
};

/// What the error of a broken file says.
fn refused<T>(result: Result<T, ReadError>) -> String {
    match result {
        Ok(_) => panic!("the file is broken"),
        Err(error) => {
            let text = error.to_string();
            assert!(!text.contains('\n'), "{text}");
            text
        }
    }
}

mod flow_log {
    use super::*;

    fn read(text: &str) -> Vec<(u64, u64)> {
        let log = FlowLog::parse("log", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        log.flows.iter().map(|flow| (flow.start.0, flow.size.0)).collect()
    }

    fn error(text: &str) -> String {
        refused(FlowLog::parse("log", text.as_bytes()))
    }

    #[test]
    fn columns_are_found_by_name() {
        assert_eq!(
            read("# a comment\nnote,size_bytes,start_s\n\"x, y\",200,1.5\n# more\n,100,0.25\n"),
            [(250_000_000, 100), (1_500_000_000, 200)]
        );
        assert_eq!(read("start_s\tsize_bytes\r\n1e-3\t7\r\n"), [(1_000_000, 7)]);
        assert_eq!(read("\u{feff}start_s, size_bytes\n 3 , 4 "), [(3_000_000_000, 4)]);
        assert_eq!(read("start_s,size_bytes\n"), []);
    }

    #[test]
    fn unix_times_are_exact_and_can_be_moved_to_zero() {
        let text = "start_s,size_bytes\n1438387200.123456789,1\n1438387199.000000001,2\n";
        let log = FlowLog::parse("log", text.as_bytes()).expect("a good log").from_first();
        let expected = [(0, 2), (1_123_456_788, 1)];
        let expected =
            expected.map(|(nanos, size)| LoggedFlow { start: Time(nanos), size: Bytes(size) });
        assert_eq!(log.flows, expected);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let heading = "expected a heading with the columns start_s and size_bytes";
        assert_eq!(error(""), format!("log:1: found the end of the file, {heading}"));
        assert_eq!(error("start,size\n1,2\n"), format!("log:1: found 'start,size', {heading}"));
        let size = "expected whole bytes in size_bytes, at most 1 TB";
        assert_eq!(
            error("# one\n\nstart_s,size_bytes\n0,1\n# five\n1,-3\n"),
            format!("log:6: found '-3', {size}")
        );
        assert_eq!(error("start_s,size_bytes\n0,1.5\n"), format!("log:2: found '1.5', {size}"));
        assert_eq!(error("start_s,size_bytes\n0\n"), format!("log:2: found '', {size}"));
        for start in ["-1", "nan", "inf", "noon"] {
            assert_eq!(
                error(&format!("start_s,size_bytes\n\n{start},1\n")),
                format!(
                    "log:3: found '{start}', expected seconds from zero on in start_s, as 0.25"
                )
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            flows in prop::collection::vec((0..10_u64.pow(18), 0..=10_u64.pow(12)), 0..20)
        ) {
            let mut text = String::from("start_s,size_bytes\n");
            for (nanos, size) in &flows {
                let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
                text += &format!("{seconds}.{rest:09},{size}\n");
            }
            let mut expected = flows;
            expected.sort_by_key(|(start, _)| *start);
            prop_assert_eq!(read(&text), expected);
        }
    }
}

mod frames {
    use super::*;

    fn parse(text: &str) -> Result<FrameTrace, ReadError> {
        FrameTrace::parse("video", text.as_bytes(), Bytes(28)..=Bytes(65_535))
    }

    #[test]
    fn frames_are_put_in_order_and_begin_at_zero() {
        let trace = parse("size_bytes,start_s\n300,7.02\n100,7\n200,7.01\n").expect("frames");
        let frames: Vec<_> = trace.frames().iter().map(|frame| (frame.at, frame.size)).collect();
        let at = |millis: u64| Time(millis * 1_000_000);
        assert_eq!(frames, [(at(0), Bytes(100)), (at(10), Bytes(200)), (at(20), Bytes(300))]);
        assert_eq!(trace.period(), Span::millis(30));
        // 600 bytes in 30 ms.
        assert_eq!((trace.size(), trace.mean_rate()), (Bytes(600), Rate(160_000)));
    }

    #[test]
    fn frames_of_one_moment_have_no_period() {
        assert_eq!(parse("start_s,size_bytes\n3,50\n").expect("a frame").period(), Span::ZERO);
        let trace = parse("start_s,size_bytes\n3,50\n3,60\n").expect("frames");
        assert_eq!((trace.period(), trace.mean_rate()), (Span::ZERO, Rate(0)));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let error = |text: &str| refused(parse(text));
        let range = "expected from 28 to 65535 in size_bytes";
        assert_eq!(
            error("# a\nstart_s,size_bytes\n0,28\n1,27\n"),
            format!("video:4: found 27, {range}")
        );
        assert_eq!(
            error("start_s,size_bytes\n0,65536\n"),
            format!("video:2: found 65536, {range}")
        );
        let size = "expected whole bytes in size_bytes, at most 1 TB";
        assert_eq!(
            error("start_s,size_bytes\n0,100\n1,I\n"),
            format!("video:3: found 'I', {size}")
        );
        assert_eq!(
            error("start_s,size_bytes\n\nI,100\n"),
            "video:3: found 'I', expected seconds from zero on in start_s, as 0.25"
        );
        let heading = "expected a heading with the columns start_s and size_bytes";
        assert_eq!(error("1\tH\t12038\n"), format!("video:1: found '1,H,12038', {heading}"));
        let nothing = "video: found nothing to use, expected frames";
        assert_eq!(error("start_s,size_bytes\n"), nothing);
    }
}

mod http_log {
    use super::*;

    fn read(text: &[u8]) -> (Vec<(u64, u64)>, u64) {
        let log = HttpLog::parse("log", text).unwrap_or_else(|error| panic!("{error}"));
        let replies = log.replies.iter().map(|reply| (reply.at.0 / 1_000_000_000, reply.size.0));
        (replies.collect(), log.without_size)
    }

    #[test]
    fn common_and_combined_lines_are_read() {
        let log = br#"h - - [01/Jul/1995:00:00:03 -0400] "GET /a HTTP/1.0" 200 6245
h - u [01/Jul/1995:04:00:01 +0000] "GET /b" 304 0
h - - [01/Jul/1995:00:00:03 -0400] "GET /c HTTP/1.0" 404 -
h - - [01/Jul/1995:00:00:02 -0400] "GET /" x" y HTTP/1.0" 200 12 "http://r/" "agent 1.0"
"#;
        assert_eq!(read(log), (vec![(0, 0), (1, 12), (2, 6_245)], 1));
        assert_eq!(read(b""), (vec![], 0));
        let hosts = |text: &[u8]| -> Vec<u32> {
            let log = HttpLog::parse("log", text).expect("a good log");
            log.replies.iter().map(|reply| reply.host).collect()
        };
        assert_eq!(hosts(log), [0, 0, 0]);
        let line = |host: &str| format!("{host} - - [01/Jul/1995:00:00:03 -0400] \"G\" 200 6\n");
        let log = ["b", "a", "b"].map(line).concat();
        assert_eq!(hosts(log.as_bytes()), [0, 1, 0]);
        // What clients send need not be text.
        let log =
            b"h - - [01/Jul/1995:00:00:03 -0400] \"GET /\xff\xfe \x16\" 400 9 \"-\" \"\xff\"\r\n";
        assert_eq!(read(log), (vec![(0, 9)], 0));
    }

    #[test]
    fn squid_says_when_a_request_began() {
        let log =
            b"1500000002.500     90 192.0.2.7 TCP_MISS/200 6245 GET http://e/ - HIER_DIRECT/- -\n\
            1500000001.000   2000 192.0.2.8 TCP_TUNNEL/200 80 CONNECT \xff:443 - HIER_DIRECT/- -\n";
        let log = HttpLog::parse("log", log).unwrap_or_else(|error| panic!("{error}"));
        let replies = log.replies.iter().map(|it| (it.at.0 / 1_000_000, it.size.0, it.host));
        assert_eq!(replies.collect::<Vec<_>>(), [(0, 80, 1), (3_410, 6_245, 0)]);
        let absurd = b"1500000002.500 90 c TCP_MISS/200 1000000000001 GET http://e/ - D/- -\n";
        assert!(refused(HttpLog::parse("log", absurd)).starts_with("log:1: found '1500000002"));
    }

    #[test]
    fn tab_separated_logs_are_read_by_their_heading() {
        let log = b"host\tlogname\ttime\tmethod\turl\tresponse\tbytes\n\
            h\t-\t804571206\tGET\t/\"x\t200\t3985\t\t\n\
            h\t-\t804571201\tGET\t/y\t304\t-\t\t\n\
            h\t-\t804571203\tGET\t/z\t200\t7\t\t\n";
        assert_eq!(read(log), (vec![(0, 7), (3, 3_985)], 1));
        let log = HttpLog::parse("log", b"bytes\ttime\thost\n1\t5\ta\n1\t6\tb\n");
        let replies = log.expect("a good log").replies;
        assert_eq!((replies[0].host, replies[1].host), (0, 1));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let good = "h - - [01/Jul/1995:00:00:03 -0400] \"GET /a\" 200 6245";
        let form = "expected host - - [day/Mon/year:h:m:s zone] \"request\" status bytes";
        let table = "host\ttime\tbytes\n";
        for (text, place) in [
            (format!("{good}\nnonsense\n"), format!("log:2: found 'nonsense', {form}")),
            (format!("{good}\n\n"), format!("log:2: found '', {form}")),
            (
                good.replace("Jul", "Jux"),
                format!("log:1: found 'h - - [01/Jux/1995:00:00:03 -0400] \\\"GET /a\\\" 200 6245', {form}"),
            ),
            (
                good.replace("6245", "62x"),
                format!("log:1: found 'h - - [01/Jul/1995:00:00:03 -0400] \\\"GET /a\\\" 200 62x', {form}"),
            ),
            (
                format!("{table}h\t1\t2\nh\t-1.5\t2\n"),
                "log:3: found 'h\\t-1.5\\t2', expected Unix seconds in column 2 and bytes in column 3"
                    .into(),
            ),
        ] {
            assert_eq!(refused(HttpLog::parse("log", text.as_bytes())), place);
        }
    }
}

mod page_load {
    use super::*;

    /// The size of a reply that an archive describes so.
    fn size(response: &str) -> Option<u64> {
        let text = format!(
            r#"{{"log": {{"entries": [{{"startedDateTime": "2016-01-24T14:41:45Z",
            "request": {{"url": "https://e/"}}, "response": {response}}}]}}}}"#
        );
        let loads = PageLoads::parse("page", text.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        let found = loads.requests().map(|request| request.size.0).next();
        assert_eq!(loads.unknown_sizes == 0, found.is_some());
        found
    }

    #[test]
    fn sizes_are_found_where_browsers_put_them() {
        // Chrome over HTTP/2, with and without the size of the headers.
        assert_eq!(
            size(r#"{"bodySize": -1, "_transferSize": 5000, "headersSize": -1}"#),
            Some(5_000)
        );
        assert_eq!(
            size(r#"{"bodySize": -1, "_transferSize": 5000, "headersSize": 200}"#),
            Some(4_800)
        );
        assert_eq!(size(r#"{"bodySize": -1, "_transferSize": 0, "_fromCache": "disk"}"#), Some(0));
        // Firefox and WebKit, where nothing was measured.
        let headers = r#"[{"name": "Content-Length", "value": "1234"}]"#;
        assert_eq!(size(&format!(r#"{{"bodySize": -1, "headers": {headers}}}"#)), Some(1_234));
        let content = r#""content": {"size": 9000, "compression": 6000}"#;
        assert_eq!(size(&format!(r#"{{"bodySize": -1, {content}}}"#)), Some(3_000));
        let plain = r#""headers": [{"name": "server", "value": "x"}], "content": {"size": 900}"#;
        assert_eq!(size(&format!(r#"{{"bodySize": -1, {plain}}}"#)), Some(900));
        let packed = plain.replace("server", "Content-Encoding");
        assert_eq!(size(&format!(r#"{{"bodySize": -1, {packed}}}"#)), None);
        assert_eq!(size(r#"{"content": {"size": 900}}"#), None);
    }

    #[test]
    fn absurd_sizes_are_refused_with_their_line() {
        let text = ARCHIVE.replace("\"bodySize\": 30", "\"bodySize\": 1e300");
        assert_eq!(
            refused(PageLoads::parse("page", text.as_bytes())),
            "page:3: found 'a size of 1e300 bytes, over 1 TB', expected an HTTP Archive (HAR)"
        );
    }

    const ARCHIVE: &str = r#"{"log": {"version": "1.2", "entries": [
        {"pageref": "p1", "startedDateTime": "2016-01-24T14:41:45.900Z", "time": 20.5,
         "request": {"url": "https://Example.org:444/late"}, "response": {"bodySize": 30}},
        {"pageref": "p2", "startedDateTime": "2016-01-24T15:41:46.000+01:00",
         "request": {"url": "http://cdn.example.org/x"}, "response": {"bodySize": 5.0}},
        {"pageref": "p1", "startedDateTime": "2016-01-24T14:41:45.818Z",
         "request": {"url": "https://example.org/"}, "response": {"bodySize": 0, "x": []}},
        {"pageref": "p1", "startedDateTime": "2016-01-24T14:41:45.818Z",
         "request": {"url": "https://example.org/n"}, "response": {"bodySize": -1}},
        {"startedDateTime": "2016-01-24T14:41:45Z",
         "request": {"url": "https://example.org/n"}},
        {"startedDateTime": "2016-01-24T14:41:45Z",
         "request": {"url": "https://example.org/n"}, "response": {"bodySize": null}}
    ]}}"#;

    #[test]
    fn requests_are_sorted_into_pages() {
        let loads = PageLoads::parse("har", ARCHIVE.as_bytes()).expect("a good archive");
        assert_eq!(loads.unknown_sizes, 3);
        let requests = |page: usize| -> Vec<_> {
            let requests = loads.pages[page].requests.iter();
            requests.map(|r| (r.at.0 / 1_000_000, r.host.as_str(), r.size.0)).collect()
        };
        assert_eq!(loads.pages.len(), 2);
        assert_eq!(loads.pages[0].name, "p1");
        assert_eq!(requests(0), [(0, "example.org", 0), (82, "example.org", 30)]);
        assert_eq!(requests(1), [(0, "cdn.example.org", 5)]);
        let took = loads.pages[0].requests.iter().map(|request| request.took);
        assert_eq!(took.collect::<Vec<_>>(), [Span::ZERO, Span::micros(20_500)]);
        let marked = format!("\u{feff}{ARCHIVE}");
        assert_eq!(PageLoads::parse("har", marked.as_bytes()).ok(), Some(loads));
    }

    /// The requests of an archive whose entries are these, all with a URL by number,
    /// 10 ms apart, of 100 ms.
    fn requests(entries: &[&str]) -> Vec<PageRequest> {
        let entry = |(number, rest): (usize, &&str)| {
            let size =
                if rest.contains("\"response\"") { "" } else { r#""response": {"bodySize": 9},"# };
            format!(
                r#"{{"startedDateTime": "2016-01-24T14:41:45.{:03}Z", "time": 100, {size}
                    "request": {{"url": "https://h.org/{number}"}}, {rest}}}"#,
                number * 10
            )
        };
        let entries: Vec<String> = entries.iter().enumerate().map(entry).collect();
        let text = format!(r#"{{"log": {{"entries": [{}]}}}}"#, entries.join(","));
        let mut loads = PageLoads::parse("har", text.as_bytes()).expect("a good archive");
        loads.pages.remove(0).requests
    }

    #[test]
    fn initiators_are_found_in_every_form_and_are_earlier_ones() {
        let found = requests(&[
            r#""_initiator": "https://h.org/1""#,
            r#""_initiator": "https://h.org/0""#,
            r#""_initiator": {"type": "parser", "url": "https://h.org/0"}"#,
            r#""_initiator": {"type": "script", "stack": {"callFrames": [{"url": "https://h.org/2"}]}}"#,
            r#""_initiator": {"type": "other"}"#,
            r#""_initiator": [7]"#,
        ]);
        let found: Vec<_> = found.iter().map(|request| request.initiator).collect();
        assert_eq!(found, [None, Some(0), Some(0), Some(2), None, None]);
    }

    #[test]
    fn versions_and_connections_are_read_as_tools_write_them() {
        let version = |text: &str| {
            let entry = format!(r#""response": {{"bodySize": 1, "httpVersion": {text}}}"#);
            requests(&[&entry])[0].version
        };
        for two in ["h2", "HTTP/2", "HTTP/2.0", "http/2+quic/46", "h3", "spdy/3.1", "us:", "2 2"] {
            assert_eq!(version(&format!("\"{two}\"")), HttpVersion::Two, "{two}");
        }
        for one in ["\"HTTP/1.1\"", "\"http/1.0\"", "\"1.1\"", "\"\"", "null", "7"] {
            assert_eq!(version(one), HttpVersion::One, "{one}");
        }
        let found = requests(&[
            r#""connection": "443""#,
            r#""_socket": 12"#,
            r#""connection": "", "_socket": "4""#,
            r#""connection": {}"#,
        ]);
        let found: Vec<_> = found.iter().map(|request| request.connection.as_deref()).collect();
        assert_eq!(found, [Some("443"), Some("12"), Some("4"), None]);
        let found = requests(&[r#""_priority": "VeryHigh""#, r#""_priority": "Low""#, r#""x": 1"#]);
        assert_eq!(found.iter().map(|it| it.urgency.0).collect::<Vec<_>>(), [0, 3, 3]);
    }

    #[test]
    fn the_time_of_a_server_is_what_is_left_of_waiting_after_a_round_trip() {
        let found = requests(&[
            r#""timings": {"connect": 30, "ssl": 20, "wait": 25, "receive": 40}"#,
            r#""timings": {"connect": -1, "ssl": -1, "wait": 8, "receive": 2.5}"#,
            r#""timings": {"wait": null}"#,
            r#""timings": "soon""#,
        ]);
        // The handshake took 10 ms.
        let think: Vec<_> = found.iter().map(|request| request.think).collect();
        assert_eq!(think, [Span::millis(15), Span::ZERO, Span::ZERO, Span::ZERO]);
        let first: Vec<_> = found.iter().map(|request| request.first_byte).collect();
        assert_eq!(first[..2], [Some(Span::millis(60)), Some(Span::micros(97_500))]);
        assert_eq!(first[2..], [None, None]);
        // Without a handshake, the shortest waiting is the round trip.
        let found = requests(&[r#""timings": {"wait": 25}"#, r#""timings": {"wait": 20}"#]);
        assert_eq!(found[0].think, Span::millis(5));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let error = |text: &str| refused(PageLoads::parse("har", text.as_bytes()));
        let end = "expected an HTTP Archive (HAR)";
        assert_eq!(error("{}"), format!("har:1: found 'missing field `log`', {end}"));
        assert_eq!(
            error("{\"log\":\n{\"entries\": 7}}"),
            format!("har:2: found 'invalid type: integer `7`, expected a sequence', {end}")
        );
        assert_eq!(error(""), format!("har:1: found 'EOF while parsing a value', {end}"));
        let wrong_date = ARCHIVE.replace("14:41:45.900Z", "soon");
        assert!(error(&wrong_date).starts_with("har:2: found '\\'2016-01-24Tsoon\\' is no date"));
        let deep = format!("{{\"x\": {}", "[".repeat(100_000));
        assert!(error(&deep).starts_with("har:1: found "));
    }
}

mod delivery {
    use super::*;

    fn trace(text: &str) -> DeliveryTrace {
        DeliveryTrace::parse("trace", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
    }

    fn millis(count: u64) -> Time {
        Time::ZERO + Span::millis(count)
    }

    #[test]
    fn a_trace_repeats_from_its_last_time() {
        let trace = trace("0\n2\n2\n5\n");
        let mut cursor = trace.cursor();
        let taken: Vec<_> =
            (0..9).map(|_| cursor.next_opportunity(&trace, Time::ZERO).0 / 1_000_000).collect();
        assert_eq!(taken, [0, 2, 2, 5, 5, 7, 7, 10, 10]);
        assert_eq!(trace.period(), Span::millis(5));
        assert_eq!(trace.opportunities(), 4);
        assert_eq!(trace.mean_rate(), Rate(4 * 1_504 * 8 * 200));
    }

    #[test]
    fn what_passes_unused_is_gone() {
        let trace = trace("2\r\n3\r\n5");
        let mut cursor = trace.cursor();
        assert_eq!(cursor.next_opportunity(&trace, Time(2_000_001)), millis(3));
        assert_eq!(cursor.next_opportunity(&trace, Time::ZERO), millis(5));
        assert_eq!(cursor.next_opportunity(&trace, millis(5_000_000)), millis(5_000_000));
        assert_eq!(cursor.next_opportunity(&trace, millis(5_000_004)), millis(5_000_005));
        assert_eq!(cursor.next_opportunity(&trace, Time::ZERO), millis(5_000_007));
        let last = cursor.next_opportunity(&trace, Time::FAR_FUTURE);
        assert_eq!(last, Time::FAR_FUTURE);
        assert_eq!(cursor.next_opportunity(&trace, Time::FAR_FUTURE), Time::FAR_FUTURE);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let error = |text: &str| refused(DeliveryTrace::parse("trace", text.as_bytes()));
        let whole = "expected whole milliseconds below 2^32";
        for (text, expected) in [
            ("", "trace:1: found the end of the file, expected a time in milliseconds".to_string()),
            ("3\n2\n", "trace:2: found 2, expected at least 3, as on the line before".into()),
            (
                "0\n0\n",
                "trace:2: found 0 as the last time, expected a time above 0 to repeat from".into(),
            ),
            ("-1\n", format!("trace:1: found '-1', {whole}")),
            ("1\n\n2\n", format!("trace:2: found '', {whole}")),
            ("1.5\n", format!("trace:1: found '1.5', {whole}")),
            ("4294967296\n", format!("trace:1: found '4294967296', {whole}")),
        ] {
            assert_eq!(error(text), expected);
        }
    }

    proptest! {
        /// Beside a slow twin that walks through the opportunities one by one.
        #[test]
        fn the_cursor_skips_as_if_it_walked(
            steps in prop::collection::vec(0..4_u64, 1..12),
            asked in prop::collection::vec(0..9_000_000_u64, 1..60),
        ) {
            let mut stamps: Vec<u64> = steps.iter().scan(0, |sum, step| {
                *sum += step;
                Some(*sum)
            }).collect();
            if stamps.last() == Some(&0) {
                stamps.push(1);
            }
            let text: Vec<_> = stamps.iter().map(u64::to_string).collect();
            let trace = trace(&text.join("\n"));
            let period = stamps[stamps.len() - 1];
            let mut walk = (0..)
                .flat_map(|round| stamps.iter().map(move |stamp| millis(round * period + stamp)))
                .peekable();
            let mut cursor = trace.cursor();
            let mut from = Time::ZERO;
            for (index, jump) in asked.iter().enumerate() {
                // On a busy link the question is mostly about now.
                from += if index % 3 == 0 { Span(*jump) } else { Span(0) };
                let expected = walk.find(|at| *at >= from);
                prop_assert_eq!(Some(cursor.next_opportunity(&trace, from)), expected);
            }
        }
    }
}
