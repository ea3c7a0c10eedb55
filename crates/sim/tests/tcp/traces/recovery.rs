//! Fast retransmit and recovery: NewReno (RFC 6582) and SACK (RFC 6675).

use tidegate_sim::tcp::{Flags, Ns3, TcpConfig};

use super::{MSS, millis, pair, plain, selective, whole};
use crate::pair::{CLIENT, Fate, SERVER};

/// RFC 6582 with segment 3 of 8 lost. Acknowledgements 2 and 3 open the window
/// to 10, so 9 to 12 go out. The third duplicate of 3 finds 10 segments in
/// flight: threshold 5, window 5 + 3 = 8, segment 3 again; the fourth and fifth
/// inflate it to 10. At 300 ms four more duplicates (from 9 to 12) inflate to
/// 14, one new segment for each. The full acknowledgement 13 finds 13 to 16 in
/// flight: min(5, 4 + 1) = 5, and 17 goes out. Then equation 3: 5 + 1/5 = 5.2.
#[test]
fn newreno_repairs_one_loss() {
    let mut pair = pair(&plain(8)).transfer(20 * MSS).losing(&[3]);
    insta::assert_snapshot!(whole(&mut pair), @r"
      0.000 > SYN                     cwnd 8.00
     50.000 < SYN ack 1
    100.000 > ack 1                   cwnd 8.00
    100.000 > data 1                  cwnd 8.00
    100.000 > data 2                  cwnd 8.00
    100.000 > data 3 LOST             cwnd 8.00
    100.000 > data 4                  cwnd 8.00
    100.000 > data 5                  cwnd 8.00
    100.000 > data 6                  cwnd 8.00
    100.000 > data 7                  cwnd 8.00
    100.000 > data 8                  cwnd 8.00
    150.000 < ack 2
    150.000 < ack 3
    150.000 < ack 3
    150.000 < ack 3
    150.000 < ack 3
    150.000 < ack 3
    150.000 < ack 3
    200.000 > data 9                  cwnd 9.00
    200.000 > data 10                 cwnd 9.00
    200.000 > data 11                 cwnd 10.00
    200.000 > data 12                 cwnd 10.00
    200.000 > data 3                  cwnd 8.00 ssthresh 5.00
    250.000 < ack 3
    250.000 < ack 3
    250.000 < ack 3
    250.000 < ack 3
    250.000 < ack 13
    300.000 > data 13                 cwnd 11.00 ssthresh 5.00
    300.000 > data 14                 cwnd 12.00 ssthresh 5.00
    300.000 > data 15                 cwnd 13.00 ssthresh 5.00
    300.000 > data 16                 cwnd 14.00 ssthresh 5.00
    300.000 > data 17                 cwnd 5.00 ssthresh 5.00
    350.000 < ack 14
    350.000 < ack 15
    350.000 < ack 16
    350.000 < ack 17
    350.000 < ack 18
    400.000 > data 18                 cwnd 5.20 ssthresh 5.00
    400.000 > data 19                 cwnd 5.39 ssthresh 5.00
    400.000 > FIN data 20             cwnd 5.57 ssthresh 5.00
    450.000 < ack 19
    450.000 < ack 20
    450.000 < ack b29202
    450.000 < FIN ack b29202
    500.000 > ack b2                  cwnd 5.57 ssthresh 5.00
    ");
}

/// Segments 3 and 5 lost. As above until 300 ms, with one duplicate less. The
/// partial acknowledgement 5 covers two segments: 13 - 2 + 1 = 12; 5 goes out
/// again, and with 5 to 15 in flight, 11, there is room for 16. At 400 ms three
/// duplicates inflate to 15; the full acknowledgement is 16, beyond
/// `recover` = 12.
#[test]
fn newreno_repairs_two_losses() {
    let mut pair = pair(&plain(8)).transfer(20 * MSS).losing(&[3, 5]);
    insta::assert_snapshot!(whole(&mut pair), @r"
      0.000 > SYN                     cwnd 8.00
     50.000 < SYN ack 1
    100.000 > ack 1                   cwnd 8.00
    100.000 > data 1                  cwnd 8.00
    100.000 > data 2                  cwnd 8.00
    100.000 > data 3 LOST             cwnd 8.00
    100.000 > data 4                  cwnd 8.00
    100.000 > data 5 LOST             cwnd 8.00
    100.000 > data 6                  cwnd 8.00
    100.000 > data 7                  cwnd 8.00
    100.000 > data 8                  cwnd 8.00
    150.000 < ack 2
    150.000 < ack 3
    150.000 < ack 3
    150.000 < ack 3
    150.000 < ack 3
    150.000 < ack 3
    200.000 > data 9                  cwnd 9.00
    200.000 > data 10                 cwnd 9.00
    200.000 > data 11                 cwnd 10.00
    200.000 > data 12                 cwnd 10.00
    200.000 > data 3                  cwnd 8.00 ssthresh 5.00
    250.000 < ack 3
    250.000 < ack 3
    250.000 < ack 3
    250.000 < ack 3
    250.000 < ack 5
    300.000 > data 13                 cwnd 11.00 ssthresh 5.00
    300.000 > data 14                 cwnd 12.00 ssthresh 5.00
    300.000 > data 15                 cwnd 13.00 ssthresh 5.00
    300.000 > data 5                  cwnd 12.00 ssthresh 5.00
    300.000 > data 16                 cwnd 12.00 ssthresh 5.00
    350.000 < ack 5
    350.000 < ack 5
    350.000 < ack 5
    350.000 < ack 16
    350.000 < ack 17
    400.000 > data 17                 cwnd 13.00 ssthresh 5.00
    400.000 > data 18                 cwnd 14.00 ssthresh 5.00
    400.000 > data 19                 cwnd 15.00 ssthresh 5.00
    400.000 > FIN data 20             cwnd 5.00 ssthresh 5.00
    450.000 < ack 18
    450.000 < ack 19
    450.000 < ack 20
    450.000 < ack b29202
    450.000 < FIN ack b29202
    500.000 > ack b2                  cwnd 5.00 ssthresh 5.00
    ");
}

/// Segments 3, 5 and 6 lost: one round trip for each. The second partial
/// acknowledgement covers one segment: 13 - 1 + 1 = 13. At 500 ms two
/// duplicates inflate from 14, and 20 goes out after the first (18 - 6 + 1 = 14
/// were in flight). The full acknowledgement is 18: 3 segments are left in
/// flight, min(5, 3 + 1) = 4.
#[test]
fn newreno_repairs_three_losses() {
    let mut pair = pair(&plain(8)).transfer(20 * MSS).losing(&[3, 5, 6]);
    insta::assert_snapshot!(whole(&mut pair), @r"
      0.000 > SYN                     cwnd 8.00
     50.000 < SYN ack 1
    100.000 > ack 1                   cwnd 8.00
    100.000 > data 1                  cwnd 8.00
    100.000 > data 2                  cwnd 8.00
    100.000 > data 3 LOST             cwnd 8.00
    100.000 > data 4                  cwnd 8.00
    100.000 > data 5 LOST             cwnd 8.00
    100.000 > data 6 LOST             cwnd 8.00
    100.000 > data 7                  cwnd 8.00
    100.000 > data 8                  cwnd 8.00
    150.000 < ack 2
    150.000 < ack 3
    150.000 < ack 3
    150.000 < ack 3
    150.000 < ack 3
    200.000 > data 9                  cwnd 9.00
    200.000 > data 10                 cwnd 9.00
    200.000 > data 11                 cwnd 10.00
    200.000 > data 12                 cwnd 10.00
    200.000 > data 3                  cwnd 8.00 ssthresh 5.00
    250.000 < ack 3
    250.000 < ack 3
    250.000 < ack 3
    250.000 < ack 3
    250.000 < ack 5
    300.000 > data 13                 cwnd 11.00 ssthresh 5.00
    300.000 > data 14                 cwnd 12.00 ssthresh 5.00
    300.000 > data 5                  cwnd 11.00 ssthresh 5.00
    300.000 > data 15                 cwnd 11.00 ssthresh 5.00
    350.000 < ack 5
    350.000 < ack 5
    350.000 < ack 6
    350.000 < ack 6
    400.000 > data 16                 cwnd 12.00 ssthresh 5.00
    400.000 > data 17                 cwnd 13.00 ssthresh 5.00
    400.000 > data 6                  cwnd 13.00 ssthresh 5.00
    400.000 > data 18                 cwnd 13.00 ssthresh 5.00
    400.000 > data 19                 cwnd 14.00 ssthresh 5.00
    450.000 < ack 6
    450.000 < ack 6
    450.000 < ack 18
    450.000 < ack 19
    450.000 < ack 20
    500.000 > FIN data 20             cwnd 15.00 ssthresh 5.00
    550.000 < ack b29202
    550.000 < FIN ack b29202
    600.000 > ack b2                  cwnd 4.00 ssthresh 5.00
    ");
}

/// RFC 6675 with segment 3 lost. SACK 4 and 4-5 take the pipe from 10 to 8, so
/// that 13 and 14 go out (limited transmit, section 5 step 3). The third makes
/// 3 lost: of the 12 segments outstanding the two do not count, 10 / 2 = 5. The
/// pipe is then 3 and 7 to 14, and it is 7 at the end of this round. At 300 ms
/// SACK of 9, 10 and 11 takes it to 4: from there a new segment for each.
#[test]
fn sack_repairs_one_loss() {
    let mut pair = pair(&selective(8)).transfer(20 * MSS).losing(&[3]);
    insta::assert_snapshot!(whole(&mut pair), @r"
      0.000 > SYN                     cwnd 8.00
     50.000 < SYN ack 1
    100.000 > ack 1                   cwnd 8.00
    100.000 > data 1                  cwnd 8.00
    100.000 > data 2                  cwnd 8.00
    100.000 > data 3 LOST             cwnd 8.00
    100.000 > data 4                  cwnd 8.00
    100.000 > data 5                  cwnd 8.00
    100.000 > data 6                  cwnd 8.00
    100.000 > data 7                  cwnd 8.00
    100.000 > data 8                  cwnd 8.00
    150.000 < ack 2
    150.000 < ack 3
    150.000 < ack 3 sack 4
    150.000 < ack 3 sack 4-5
    150.000 < ack 3 sack 4-6
    150.000 < ack 3 sack 4-7
    150.000 < ack 3 sack 4-8
    200.000 > data 9                  cwnd 9.00
    200.000 > data 10                 cwnd 9.00
    200.000 > data 11                 cwnd 10.00
    200.000 > data 12                 cwnd 10.00
    200.000 > data 13                 cwnd 10.00
    200.000 > data 14                 cwnd 10.00
    200.000 > data 3                  cwnd 5.00 ssthresh 5.00
    250.000 < ack 3 sack 4-9
    250.000 < ack 3 sack 4-10
    250.000 < ack 3 sack 4-11
    250.000 < ack 3 sack 4-12
    250.000 < ack 3 sack 4-13
    250.000 < ack 3 sack 4-14
    250.000 < ack 15
    300.000 > data 15                 cwnd 5.00 ssthresh 5.00
    300.000 > data 16                 cwnd 5.00 ssthresh 5.00
    300.000 > data 17                 cwnd 5.00 ssthresh 5.00
    300.000 > data 18                 cwnd 5.00 ssthresh 5.00
    300.000 > data 19                 cwnd 5.00 ssthresh 5.00
    350.000 < ack 16
    350.000 < ack 17
    350.000 < ack 18
    350.000 < ack 19
    350.000 < ack 20
    400.000 > FIN data 20             cwnd 5.20 ssthresh 5.00
    450.000 < ack b29202
    450.000 < FIN ack b29202
    500.000 > ack b2                  cwnd 5.20 ssthresh 5.00
    ");
}

/// Segments 3, 5 and 6 lost: all are known by 200 ms (SACK 7-8 and 4 are three
/// segments above 5 and 6), and all are sent again by 300 ms, when the pipe has
/// room: two round trips less than NewReno.
#[test]
fn sack_repairs_three_losses_in_one_round() {
    let mut pair = pair(&selective(8)).transfer(20 * MSS).losing(&[3, 5, 6]);
    insta::assert_snapshot!(whole(&mut pair), @r"
      0.000 > SYN                     cwnd 8.00
     50.000 < SYN ack 1
    100.000 > ack 1                   cwnd 8.00
    100.000 > data 1                  cwnd 8.00
    100.000 > data 2                  cwnd 8.00
    100.000 > data 3 LOST             cwnd 8.00
    100.000 > data 4                  cwnd 8.00
    100.000 > data 5 LOST             cwnd 8.00
    100.000 > data 6 LOST             cwnd 8.00
    100.000 > data 7                  cwnd 8.00
    100.000 > data 8                  cwnd 8.00
    150.000 < ack 2
    150.000 < ack 3
    150.000 < ack 3 sack 4
    150.000 < ack 3 sack 7 sack 4
    150.000 < ack 3 sack 7-8 sack 4
    200.000 > data 9                  cwnd 9.00
    200.000 > data 10                 cwnd 9.00
    200.000 > data 11                 cwnd 10.00
    200.000 > data 12                 cwnd 10.00
    200.000 > data 13                 cwnd 10.00
    200.000 > data 14                 cwnd 10.00
    200.000 > data 3                  cwnd 5.00 ssthresh 5.00
    250.000 < ack 3 sack 7-9 sack 4
    250.000 < ack 3 sack 7-10 sack 4
    250.000 < ack 3 sack 7-11 sack 4
    250.000 < ack 3 sack 7-12 sack 4
    250.000 < ack 3 sack 7-13 sack 4
    250.000 < ack 3 sack 7-14 sack 4
    250.000 < ack 5 sack 7-14
    300.000 > data 5                  cwnd 5.00 ssthresh 5.00
    300.000 > data 6                  cwnd 5.00 ssthresh 5.00
    300.000 > data 15                 cwnd 5.00 ssthresh 5.00
    300.000 > data 16                 cwnd 5.00 ssthresh 5.00
    300.000 > data 17                 cwnd 5.00 ssthresh 5.00
    350.000 < ack 6 sack 7-14
    350.000 < ack 15
    350.000 < ack 16
    350.000 < ack 17
    350.000 < ack 18
    400.000 > data 18                 cwnd 5.00 ssthresh 5.00
    400.000 > data 19                 cwnd 5.00 ssthresh 5.00
    400.000 > FIN data 20             cwnd 5.20 ssthresh 5.00
    450.000 < ack 19
    450.000 < ack 20
    450.000 < ack b29202
    450.000 < FIN ack b29202
    500.000 > ack b2                  cwnd 5.20 ssthresh 5.00
    ");
}

/// RFC 6675 section 4, `NextSeg` rule 4: segments 3 and 10 of 10 are lost, and
/// nothing is left to send. SACK of 4 to 9 tells of 3 only; the rescue sends 10
/// again in the same recovery, without waiting for the timer.
#[test]
fn a_rescue_repairs_the_tail() {
    let mut pair = pair(&selective(10)).transfer(10 * MSS).losing(&[3, 10]);
    pair.run();
    let statistics = pair.ends[CLIENT].statistics();
    assert_eq!((statistics.timeouts, statistics.retransmissions), (0, 2));
    assert!(pair.now < millis(600), "{}", pair.now);
}

/// Three segments in flight and the first one lost: two duplicates are not
/// enough. With limited transmit (RFC 3042) each lets a new segment go, beyond
/// the window of 3; the second of them brings the third duplicate. The flight
/// is 5 less the 2 of limited transmit: threshold max(3 / 2, 2) = 2.
#[test]
fn limited_transmit_avoids_a_timeout() {
    let with = TcpConfig { limited_transmit: true, ..plain(3) };
    let mut limited = pair(&with).transfer(6 * MSS).losing(&[1]);
    insta::assert_snapshot!(whole(&mut limited), @r"
      0.000 > SYN                     cwnd 3.00
     50.000 < SYN ack 1
    100.000 > ack 1                   cwnd 3.00
    100.000 > data 1 LOST             cwnd 3.00
    100.000 > data 2                  cwnd 3.00
    100.000 > data 3                  cwnd 3.00
    150.000 < ack 1
    150.000 < ack 1
    200.000 > data 4                  cwnd 3.00
    200.000 > data 5                  cwnd 3.00
    250.000 < ack 1
    250.000 < ack 1
    300.000 > data 1                  cwnd 5.00 ssthresh 2.00
    300.000 > FIN data 6              cwnd 6.00 ssthresh 2.00
    350.000 < ack 6
    350.000 < ack b8762
    350.000 < FIN ack b8762
    400.000 > ack b2                  cwnd 2.00 ssthresh 2.00
    ");
    let mut waiting = pair(&plain(3)).transfer(6 * MSS).losing(&[1]);
    waiting.run();
    assert_eq!(limited.ends[CLIENT].statistics().timeouts, 0);
    assert_eq!(waiting.ends[CLIENT].statistics().timeouts, 1);
}

/// RFC 6582 section 4: after a timeout, segments that had arrived are sent
/// again, and duplicates that tell of them are no loss. Of 8 segments 1 to 4
/// are lost, and all answers too. After the timeout at 1 100 ms all go out
/// again in slow start: 1, then 2 and 3, then 4 to 7. Segment 4 completes
/// everything, and 5, 6 and 7 bring three duplicates of 9, which is not more
/// than `recover`. No fast recovery may begin, and the threshold stays at 4,
/// half of the flight at the timeout.
#[test]
fn duplicates_after_a_timeout_are_no_loss() {
    let mut answers = 0;
    let mut pair = pair(&plain(8)).transfer(16 * MSS).deciding(move |from, header, number| {
        let answer = from == SERVER && !header.flags.contains(Flags::SYN);
        answers += u32::from(answer);
        let lost = answer && answers <= 4 || from == CLIENT && header.payload > 0 && number <= 4;
        if lost { Fate::Lose } else { Fate::Pass }
    });
    insta::assert_snapshot!(whole(&mut pair), @r"
       0.000 > SYN                     cwnd 8.00
      50.000 < SYN ack 1
     100.000 > ack 1                   cwnd 8.00
     100.000 > data 1 LOST             cwnd 8.00
     100.000 > data 2 LOST             cwnd 8.00
     100.000 > data 3 LOST             cwnd 8.00
     100.000 > data 4 LOST             cwnd 8.00
     100.000 > data 5                  cwnd 8.00
     100.000 > data 6                  cwnd 8.00
     100.000 > data 7                  cwnd 8.00
     100.000 > data 8                  cwnd 8.00
     150.000 < ack 1 LOST
     150.000 < ack 1 LOST
     150.000 < ack 1 LOST
     150.000 < ack 1 LOST
    1100.000 client timer
    1100.000 > data 1                  cwnd 1.00 ssthresh 4.00
    1150.000 < ack 2
    1200.000 > data 2                  cwnd 2.00 ssthresh 4.00
    1200.000 > data 3                  cwnd 2.00 ssthresh 4.00
    1250.000 < ack 3
    1250.000 < ack 4
    1300.000 > data 4                  cwnd 3.00 ssthresh 4.00
    1300.000 > data 5                  cwnd 3.00 ssthresh 4.00
    1300.000 > data 6                  cwnd 4.00 ssthresh 4.00
    1300.000 > data 7                  cwnd 4.00 ssthresh 4.00
    1350.000 < ack 9
    1350.000 < ack 9
    1350.000 < ack 9
    1350.000 < ack 9
    1400.000 > data 9                  cwnd 4.25 ssthresh 4.00
    1400.000 > data 10                 cwnd 4.25 ssthresh 4.00
    1400.000 > data 11                 cwnd 4.25 ssthresh 4.00
    1400.000 > data 12                 cwnd 4.25 ssthresh 4.00
    1450.000 < ack 10
    1450.000 < ack 11
    1450.000 < ack 12
    1450.000 < ack 13
    1500.000 > data 13                 cwnd 4.48 ssthresh 4.00
    1500.000 > data 14                 cwnd 4.70 ssthresh 4.00
    1500.000 > data 15                 cwnd 4.91 ssthresh 4.00
    1500.000 > FIN data 16             cwnd 5.12 ssthresh 4.00
    1550.000 < ack 14
    1550.000 < ack 15
    1550.000 < ack 16
    1550.000 < ack b23362
    1550.000 < FIN ack b23362
    1600.000 > ack b2                  cwnd 5.12 ssthresh 4.00
    ");
    assert_eq!(pair.ends[CLIENT].statistics().fast_recoveries, 0);
}

/// The trace with single spaces, of a TCP that departs from the RFCs as ns-3 does.
fn departing(ns3: Ns3, window: u32, segments: u64, lost: &[u64]) -> String {
    let config = TcpConfig { ns3, ..plain(window) };
    let trace = whole(&mut pair(&config).transfer(segments * MSS).losing(lost));
    let lines = trace.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

/// The losses of `newreno_repairs_one_loss`. The third duplicate finds 10 segments in
/// flight: threshold (10 - 1) / 2, window one more; the fourth and fifth inflate it to
/// 7.5, and four more at 300 ms to 11.5, which lets out one new segment instead of
/// four. The full acknowledgement leaves 4.5 + 1/4.5.
#[test]
fn the_recovery_window_of_ns3_is_smaller() {
    let ns3 = Ns3 { recovery_window: true, ..Ns3::default() };
    let trace = departing(ns3, 8, 20, &[3]);
    assert!(trace.contains("200.000 > data 3 cwnd 5.50 ssthresh 4.50"), "{trace}");
    let sent = trace.lines().filter(|line| line.starts_with("300.000 >"));
    let expected = [
        "300.000 > data 13 cwnd 11.50 ssthresh 4.50",
        "300.000 > data 14 cwnd 4.72 ssthresh 4.50",
        "300.000 > data 15 cwnd 4.72 ssthresh 4.50",
        "300.000 > data 16 cwnd 4.72 ssthresh 4.50",
    ];
    assert_eq!(sent.collect::<Vec<_>>(), expected, "{trace}");
}

/// The first loss as above. Its repair ends at 300 ms with an acknowledgement of all
/// that was sent before it, 13, and segment 13, the 14th to be sent, is lost too.
/// RFC 6582 takes the four duplicates at 400 ms for an effect of the repair.
#[test]
fn ns3_repairs_again_right_at_the_recovery_point() {
    let ns3 = Ns3 { recovery_point: true, ..Ns3::default() };
    for (ns3, again) in [(ns3, true), (Ns3::default(), false)] {
        let trace = departing(ns3, 8, 20, &[3, 14]);
        assert_eq!(trace.contains("400.000 > data 13"), again, "{trace}");
    }
}

/// Segment 2 is sent again after a timeout, and the acknowledgement of it covers 3 and
/// 4, all that was sent before: the window stays one segment.
#[test]
fn the_end_of_a_repair_does_not_open_the_window_of_ns3() {
    let ns3 = Ns3 { repair_end: true, ..Ns3::default() };
    for (ns3, window, sixth) in [(ns3, "1.00", "1400.000"), (Ns3::default(), "2.00", "1300.000")] {
        let trace = departing(ns3, 2, 6, &[2]);
        let fifth = format!("1300.000 > data 5 cwnd {window} ssthresh 2.00");
        assert!(trace.contains(&fifth), "{trace}");
        assert!(trace.contains(&format!("{sixth} > FIN data 6")), "{trace}");
    }
}
