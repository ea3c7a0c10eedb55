//! What endpoints send and when, in full, against the RFCs by hand.
//!
//! Unless a test says otherwise the path takes 50 ms either way, so that a
//! round trip is 100 ms; the client sends from 100 ms on, and the first
//! acknowledgements come at 200 ms. The module `tcp` says how to read a line.

mod tcp;

use tcp::{CLIENT, Fate, Pair, SERVER};
use tidegate_core::{Bytes, Span, Time};
use tidegate_sim::tcp::{DelayedAck, Flags, State, TcpConfig};

const MSS: u64 = 1_460;

/// NewReno without delayed acknowledgements: one acknowledgement per segment
/// makes traces shorter to reason about.
fn plain(initial_window: u32) -> TcpConfig {
    TcpConfig { initial_window, delayed_ack: None, ..TcpConfig::papers() }
}

fn selective(initial_window: u32) -> TcpConfig {
    TcpConfig { sack: true, ..plain(initial_window) }
}

fn timed(initial_window: u32) -> TcpConfig {
    TcpConfig { rack_tlp: true, ..selective(initial_window) }
}

fn pair(config: &TcpConfig) -> Pair {
    Pair::new(config.clone(), config.clone())
}

fn millis(time: u64) -> Time {
    Time(time * 1_000_000)
}

/// Everything that happens, to the end of the connection.
fn whole(pair: &mut Pair) -> String {
    pair.run();
    std::mem::take(&mut pair.trace)
}

/// What happens after the handshake, until `until` milliseconds.
fn data_until(pair: &mut Pair, until: u64) -> String {
    pair.run_until(millis(99));
    pair.trace.clear();
    pair.run_until(millis(until));
    std::mem::take(&mut pair.trace)
}

/// RFC 5681 equation 2, and RFC 9293 section 3.6 for the close: each
/// acknowledgement adds a segment, so that 2, 4, 8 go out per round trip. Of
/// the 14 segments the last one carries the FIN, which takes one sequence
/// number (14 * 1 460 + 1 + 1 = b20442); the acknowledgement of the SYN and
/// then of the FIN of the other side is b2.
#[test]
fn slow_start_doubles() {
    insta::assert_snapshot!(whole(&mut pair(&plain(2)).transfer(14 * MSS)), @r"
      0.000 > SYN                     cwnd 2.00
     50.000 < SYN ack 1
    100.000 > ack 1                   cwnd 2.00
    100.000 > data 1                  cwnd 2.00
    100.000 > data 2                  cwnd 2.00
    150.000 < ack 2
    150.000 < ack 3
    200.000 > data 3                  cwnd 3.00
    200.000 > data 4                  cwnd 3.00
    200.000 > data 5                  cwnd 4.00
    200.000 > data 6                  cwnd 4.00
    250.000 < ack 4
    250.000 < ack 5
    250.000 < ack 6
    250.000 < ack 7
    300.000 > data 7                  cwnd 5.00
    300.000 > data 8                  cwnd 5.00
    300.000 > data 9                  cwnd 6.00
    300.000 > data 10                 cwnd 6.00
    300.000 > data 11                 cwnd 7.00
    300.000 > data 12                 cwnd 7.00
    300.000 > data 13                 cwnd 8.00
    300.000 > FIN data 14             cwnd 8.00
    350.000 < ack 8
    350.000 < ack 9
    350.000 < ack 10
    350.000 < ack 11
    350.000 < ack 12
    350.000 < ack 13
    350.000 < ack 14
    350.000 < ack b20442
    350.000 < FIN ack b20442
    400.000 > ack b2                  cwnd 8.00
    ");
}

/// With delayed acknowledgements (RFC 5681 section 4.2: every second segment)
/// the window grows by half: 2, 3, 4 or 5 segments per round trip. At 200 ms
/// one acknowledgement for two segments adds one. Segment 5 at 250 ms is alone
/// and waits for segment 6 at 350 ms, less than the 200 ms of the timer. The
/// FIN with segment 12 is acknowledged at once.
#[test]
fn delayed_acknowledgements_slow_it_down() {
    insta::assert_snapshot!(whole(&mut pair(&TcpConfig::papers()).transfer(12 * MSS)), @r"
      0.000 > SYN                     cwnd 2.00
     50.000 < SYN ack 1
    100.000 > ack 1                   cwnd 2.00
    100.000 > data 1                  cwnd 2.00
    100.000 > data 2                  cwnd 2.00
    150.000 < ack 3
    200.000 > data 3                  cwnd 3.00
    200.000 > data 4                  cwnd 3.00
    200.000 > data 5                  cwnd 3.00
    250.000 < ack 5
    300.000 > data 6                  cwnd 4.00
    300.000 > data 7                  cwnd 4.00
    300.000 > data 8                  cwnd 4.00
    350.000 < ack 7
    350.000 < ack 9
    400.000 > data 9                  cwnd 5.00
    400.000 > data 10                 cwnd 5.00
    400.000 > data 11                 cwnd 5.00
    400.000 > FIN data 12             cwnd 6.00
    450.000 < ack 11
    450.000 < ack b17522
    450.000 < FIN ack b17522
    500.000 > ack b2                  cwnd 6.00
    ");
}

/// An odd segment is acknowledged when the timer runs out: 150 + 200 = 350 ms.
#[test]
fn an_odd_segment_waits_for_the_timer() {
    insta::assert_snapshot!(data_until(&mut pair(&TcpConfig::papers()).upload(MSS), 500), @r"
    100.000 > ack 1                   cwnd 2.00
    100.000 > data 1                  cwnd 2.00
    350.000 server timer
    350.000 < ack 2
    ");
}

/// RFC 5681 equation 3 from a threshold of 4 segments. In bytes: the window of
/// 5 840 is not below the threshold, so the first acknowledgement adds
/// 1 460^2 / 5 840 = 365 (4.25), the next 2 131 600 / 6 205 = 343 (4.48), then
/// 325 (4.70), 310 (4.919, shown as 4.91), and in the next round 296 (5.12),
/// 285 (5.31), 274 (5.50), 265 (5.68).
#[test]
fn congestion_avoidance_adds_a_segment_per_round_trip() {
    let config = TcpConfig { initial_ssthresh: Some(Bytes(4 * MSS)), ..plain(4) };
    insta::assert_snapshot!(data_until(&mut pair(&config).upload(14 * MSS), 350), @r"
    100.000 > ack 1                   cwnd 4.00 ssthresh 4.00
    100.000 > data 1                  cwnd 4.00 ssthresh 4.00
    100.000 > data 2                  cwnd 4.00 ssthresh 4.00
    100.000 > data 3                  cwnd 4.00 ssthresh 4.00
    100.000 > data 4                  cwnd 4.00 ssthresh 4.00
    150.000 < ack 2
    150.000 < ack 3
    150.000 < ack 4
    150.000 < ack 5
    200.000 > data 5                  cwnd 4.25 ssthresh 4.00
    200.000 > data 6                  cwnd 4.48 ssthresh 4.00
    200.000 > data 7                  cwnd 4.70 ssthresh 4.00
    200.000 > data 8                  cwnd 4.91 ssthresh 4.00
    250.000 < ack 6
    250.000 < ack 7
    250.000 < ack 8
    250.000 < ack 9
    300.000 > data 9                  cwnd 5.12 ssthresh 4.00
    300.000 > data 10                 cwnd 5.12 ssthresh 4.00
    300.000 > data 11                 cwnd 5.31 ssthresh 4.00
    300.000 > data 12                 cwnd 5.50 ssthresh 4.00
    300.000 > data 13                 cwnd 5.68 ssthresh 4.00
    350.000 < ack 10
    350.000 < ack 11
    350.000 < ack 12
    350.000 < ack 13
    350.000 < ack 14
    ");
}

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

/// RFC 8985 with the same losses. No reordering has been seen, so the third
/// SACK makes the reordering window zero, and everything sent before what has
/// arrived is lost: the same segments as above, at the same times. The window
/// is another one, since the recovery is paced (RFC 9937).
#[test]
fn rack_finds_the_same_losses() {
    let run = |config: TcpConfig| {
        let trace = whole(&mut pair(&config).transfer(20 * MSS).losing(&[3, 5, 6]));
        let wire = trace.lines().map(|line| line.split("cwnd").next().unwrap_or(line).to_owned());
        wire.collect::<Vec<_>>()
    };
    assert_eq!(run(timed(8)), run(selective(8)));
}

/// Only two segments follow the loss, which is too few for duplicates to count.
/// SACK 3 at 200 ms starts the reordering window, a quarter of the least round
/// trip (section 6.2 step 4): segment 2 was sent at 100 ms, so at
/// 100 + 100 + 25 = 225 ms it is lost. The threshold is the least, 2; the window
/// is the pipe, nothing, and the first retransmission (RFC 9937 section 6).
#[test]
fn rack_waits_for_the_reordering_window() {
    let mut pair = pair(&timed(4)).transfer(4 * MSS).losing(&[2]);
    insta::assert_snapshot!(whole(&mut pair), @r"
      0.000 > SYN                     cwnd 4.00
     50.000 < SYN ack 1
    100.000 > ack 1                   cwnd 4.00
    100.000 > data 1                  cwnd 4.00
    100.000 > data 2 LOST             cwnd 4.00
    100.000 > data 3                  cwnd 4.00
    100.000 > FIN data 4              cwnd 4.00
    150.000 < ack 2
    150.000 < ack 2 sack 3
    150.000 < ack 2 sack 3-b4382
    225.000 client timer
    225.000 > data 2                  cwnd 1.00 ssthresh 2.00
    275.000 < ack b5842
    275.000 < FIN ack b5842
    325.000 > ack b2                  cwnd 2.00 ssthresh 2.00
    ");
}

/// A retransmission is lost as well: 1 to 8, then 9 to 14, and the 15th segment
/// sent is the second 3. RFC 6675 does not notice, and waits for the timer, set
/// anew by the last acknowledgement of new data at 200 ms; RACK sees at 400 ms
/// that segments sent after it have arrived.
#[test]
fn rack_finds_a_lost_retransmission() {
    let run = |config: TcpConfig| {
        let mut pair = pair(&config).transfer(40 * MSS).losing(&[3, 15]);
        pair.run();
        let statistics = *pair.ends[CLIENT].statistics();
        (statistics.timeouts, statistics.retransmissions, pair.now)
    };
    let ((timeouts, _, late), (none, again, early)) = (run(selective(8)), run(timed(8)));
    assert_eq!((timeouts, none, again), (1, 0, 2));
    assert!(early + Span::millis(400) < late, "{early} {late}");
}

/// RFC 8985 section 7: the last two of four segments are lost, and nothing
/// follows. Acknowledgement 3 at 200 ms leaves SRTT 100 ms and sets the probe
/// for 2 * SRTT later. The probe is the last segment again, with the FIN; its
/// SACK says that 3 is lost too. RTO would have been at 1 200 ms.
#[test]
fn a_probe_finds_a_lost_tail() {
    let mut pair = pair(&timed(10)).transfer(4 * MSS).losing(&[3, 4]);
    insta::assert_snapshot!(whole(&mut pair), @r"
      0.000 > SYN                     cwnd 10.00
     50.000 < SYN ack 1
    100.000 > ack 1                   cwnd 10.00
    100.000 > data 1                  cwnd 10.00
    100.000 > data 2                  cwnd 10.00
    100.000 > data 3 LOST             cwnd 10.00
    100.000 > FIN data 4 LOST         cwnd 10.00
    150.000 < ack 2
    150.000 < ack 3
    400.000 client timer
    400.000 > FIN data 4              cwnd 10.00
    450.000 < ack 3 sack 4-b4382
    500.000 > data 3                  cwnd 1.00 ssthresh 2.00
    550.000 < ack b5842
    550.000 < FIN ack b5842
    600.000 > ack b2                  cwnd 2.00 ssthresh 2.00
    ");
}

/// One segment lost: the peer might be delaying its acknowledgement, so 200 ms
/// are added: 100 + 2 * 100 + 200 = 500 ms (section 7.2). The acknowledgement
/// of the probe alone does not tell whether the original arrived; that of the
/// next data does (section 7.4.2): the window is reduced, from 10 segments to
/// the least of 2.
#[test]
fn a_probe_that_repairs_a_loss_counts_as_congestion() {
    let mut pair = pair(&timed(10)).upload(MSS).losing(&[1]);
    pair.run_until(millis(900));
    assert_eq!(pair.ends[CLIENT].congestion_window(), 10 * MSS);
    pair.now = millis(900);
    pair.ends[CLIENT].write(MSS);
    pair.poll(CLIENT);
    pair.run_until(millis(1_200));
    assert_eq!(pair.ends[CLIENT].congestion_window(), 2 * MSS);
    insta::assert_snapshot!(std::mem::take(&mut pair.trace), @r"
      0.000 > SYN                     cwnd 10.00
     50.000 < SYN ack 1
    100.000 > ack 1                   cwnd 10.00
    100.000 > data 1 LOST             cwnd 10.00
    500.000 client timer
    500.000 > data 1                  cwnd 10.00
    550.000 < ack 2
    900.000 > data 2                  cwnd 10.00
    950.000 < ack 3
    ");
}

/// With data left that the window did not allow, the probe is new data
/// (section 7.3), and the loss is found by its SACK. Segments 1 and 2 of a
/// window of 2 are lost, 3 is the probe. One segment has arrived, so one is sent
/// again; its arrival lets 2 and 4 go (RFC 9937).
#[test]
fn a_probe_prefers_new_data() {
    let mut pair = pair(&timed(2)).transfer(4 * MSS).losing(&[1, 2]);
    insta::assert_snapshot!(data_until(&mut pair, 650), @r"
    100.000 > ack 1                   cwnd 2.00
    100.000 > data 1 LOST             cwnd 2.00
    100.000 > data 2 LOST             cwnd 2.00
    300.000 client timer
    300.000 > data 3                  cwnd 2.00
    350.000 < ack 1 sack 3
    400.000 > data 1                  cwnd 1.00 ssthresh 2.00
    450.000 < ack 2 sack 3
    500.000 > data 2                  cwnd 2.00 ssthresh 2.00
    500.000 > FIN data 4              cwnd 2.00 ssthresh 2.00
    550.000 < ack 4
    550.000 < ack b5842
    550.000 < FIN ack b5842
    600.000 > ack b2                  cwnd 2.00 ssthresh 2.00
    ");
}

/// RFC 6298. Segment 2 is lost three times. The first timer runs from the last
/// acknowledgement of new data, at 200 ms, and takes the minimum of 1 s; then
/// 2 s and 4 s (5.5). Each timeout leaves one segment of window (RFC 5681
/// section 3.1) and the threshold of the first: 3 in flight, 2 at least. The
/// acknowledgement at 7 300 ms is of a retransmission and no measurement
/// (Karn), so when 5 is lost too its timer takes the 8 s to which the third
/// timeout has doubled it, from 7 300 to 15 300 ms. At 7 400 ms there is one
/// duplicate, of 6. Segment 2 is the second, fifth and sixth to be sent, and 5
/// is the eighth.
#[test]
fn timeouts_back_off_and_karn_keeps_them() {
    let mut pair = pair(&plain(2)).transfer(6 * MSS).losing(&[2, 5, 6, 8]);
    insta::assert_snapshot!(whole(&mut pair), @r"
        0.000 > SYN                     cwnd 2.00
       50.000 < SYN ack 1
      100.000 > ack 1                   cwnd 2.00
      100.000 > data 1                  cwnd 2.00
      100.000 > data 2 LOST             cwnd 2.00
      150.000 < ack 2
      200.000 > data 3                  cwnd 3.00
      200.000 > data 4                  cwnd 3.00
      250.000 < ack 2
      250.000 < ack 2
     1200.000 client timer
     1200.000 > data 2 LOST             cwnd 1.00 ssthresh 2.00
     3200.000 client timer
     3200.000 > data 2 LOST             cwnd 1.00 ssthresh 2.00
     7200.000 client timer
     7200.000 > data 2                  cwnd 1.00 ssthresh 2.00
     7250.000 < ack 5
     7300.000 > data 5 LOST             cwnd 2.00 ssthresh 2.00
     7300.000 > FIN data 6              cwnd 2.00 ssthresh 2.00
     7350.000 < ack 5
    15300.000 client timer
    15300.000 > data 5                  cwnd 1.00 ssthresh 2.00
    15350.000 < ack b8762
    15350.000 < FIN ack b8762
    15400.000 > ack b2                  cwnd 2.00 ssthresh 2.00
    ");
}

/// The same losses as above, but the acknowledgement at 7 300 ms ends the
/// back-off: the timer of 5 is back at 1 s, and fires at 8 300 ms.
#[test]
fn any_acknowledgement_may_end_the_back_off() {
    let config = TcpConfig { any_ack_ends_backoff: true, ..plain(2) };
    let mut pair = pair(&config).transfer(6 * MSS).losing(&[2, 5, 6, 8]);
    let trace = whole(&mut pair);
    assert!(trace.contains(" 7300.000 > data 5 LOST"), "{trace}");
    assert!(trace.contains(" 8300.000 > data 5 "), "{trace}");
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

/// RFC 9293 section 3.8.6.1. The server's application does not read, and its
/// buffer takes 4 segments. At 300 ms the window is closed; probes of one byte
/// go out after 1, 2 and 4 s and are refused. The application reads at 8 s:
/// the window update lets the refused byte go in a whole segment. A probe is
/// data, so the connection has not been idle and the window of 3 holds.
#[test]
fn a_closed_window_is_probed() {
    let server = TcpConfig { receive_window: Bytes(4 * MSS), ..plain(2) };
    let mut pair = Pair::new(plain(2), server).upload(6 * MSS);
    pair.ends[SERVER].set_reading(false);
    pair.run_until(millis(8_000));
    assert_eq!(pair.ends[SERVER].delivered(), 0);
    pair.now = millis(8_000);
    pair.ends[SERVER].set_reading(true);
    pair.poll(SERVER);
    pair.run_until(millis(9_000));
    insta::assert_snapshot!(std::mem::take(&mut pair.trace), @r"
       0.000 > SYN                     cwnd 2.00
      50.000 < SYN ack 1 win 5840
     100.000 > ack 1                   cwnd 2.00
     100.000 > data 1                  cwnd 2.00
     100.000 > data 2                  cwnd 2.00
     150.000 < ack 2 win 4380
     150.000 < ack 3 win 2920
     200.000 > data 3                  cwnd 3.00
     200.000 > data 4                  cwnd 3.00
     250.000 < ack 4 win 1460
     250.000 < ack 5 win 0
    1300.000 client timer
    1300.000 > data 5(1)               cwnd 3.00
    1350.000 < ack 5 win 0
    3300.000 client timer
    3300.000 > data 5(1)               cwnd 3.00
    3350.000 < ack 5 win 0
    7300.000 client timer
    7300.000 > data 5(1)               cwnd 3.00
    7350.000 < ack 5 win 0
    8000.000 < ack 5 win 5840
    8050.000 > data 5                  cwnd 3.00
    8050.000 > data 6                  cwnd 3.00
    8100.000 < ack 6 win 5840
    8100.000 < ack 7 win 5840
    ");
    assert_eq!(pair.ends[SERVER].delivered(), 6 * MSS);
    assert_eq!(pair.ends[CLIENT].statistics().timeouts, 0);
}

/// The window update is lost: the next probe, 8 s after the last, brings the
/// news. Without probes both ends would wait for ever.
#[test]
fn a_lost_window_update_is_found_by_a_probe() {
    let server = TcpConfig { receive_window: Bytes(4 * MSS), ..plain(2) };
    let mut pair = Pair::new(plain(2), server).upload(6 * MSS);
    pair.ends[SERVER].set_reading(false);
    pair.run_until(millis(8_000));
    pair.now = millis(8_000);
    pair.ends[SERVER].set_reading(true);
    pair.ends[SERVER].poll(pair.now, &mut Vec::new());
    pair.trace.clear();
    pair.run_until(millis(20_000));
    insta::assert_snapshot!(std::mem::take(&mut pair.trace), @r"
    15300.000 client timer
    15300.000 > data 5(1)               cwnd 3.00
    15350.000 < ack b5842 win 5839
    15400.000 > data b5842              cwnd 3.00
    15400.000 > data b7302(1459)        cwnd 3.00
    15450.000 < ack b7302 win 5840
    15450.000 < ack 7 win 4381
    ");
    assert_eq!(pair.ends[SERVER].delivered(), 6 * MSS);
}

/// RFC 9293 figure 12: the client closes, the server a moment later. The last
/// acknowledgement of the client is answered from TIME-WAIT.
#[test]
fn a_close_takes_both_directions() {
    let mut pair = pair(&plain(2)).transfer(MSS);
    insta::assert_snapshot!(whole(&mut pair), @r"
      0.000 > SYN                     cwnd 2.00
     50.000 < SYN ack 1
    100.000 > ack 1                   cwnd 2.00
    100.000 > FIN data 1              cwnd 2.00
    150.000 < ack b1462
    150.000 < FIN ack b1462
    200.000 > ack b2                  cwnd 2.00
    ");
    assert_eq!(pair.ends[CLIENT].state(), State::TimeWait);
    assert_eq!(pair.ends[SERVER].state(), State::Closed);
    assert!(pair.ends.iter().all(|end| end.is_closed() && !end.has_failed()));
}

/// RFC 9293 figure 13: both FINs cross, both ends go through CLOSING.
#[test]
fn both_may_close_at_once() {
    let mut pair = pair(&plain(2)).upload(0);
    pair.run_until(millis(200));
    pair.trace.clear();
    pair.now = millis(200);
    for end in [CLIENT, SERVER] {
        pair.ends[end].close();
        pair.poll(end);
    }
    pair.run_until(millis(220));
    assert!(pair.ends.iter().all(|end| end.state() == State::FinWait1));
    insta::assert_snapshot!(whole(&mut pair), @r"
    200.000 > FIN ack 1               cwnd 2.00
    200.000 < FIN ack 1
    250.000 < ack b2
    250.000 > ack b2                  cwnd 2.00
    ");
    assert!(pair.ends.iter().all(|end| end.state() == State::TimeWait && end.is_closed()));
}

/// The client's FIN is lost once and the server's twice: the timers send them
/// again, 1 s and 1 + 2 s later, and TIME-WAIT acknowledges.
#[test]
fn lost_fins_are_sent_again() {
    let mut fins = [0, 0];
    let mut pair = pair(&plain(2)).transfer(MSS).deciding(move |from, header, _| {
        let fin = header.flags.contains(Flags::FIN);
        fins[from] += u32::from(fin);
        if fin && fins[from] <= [1, 2][from] { Fate::Lose } else { Fate::Pass }
    });
    insta::assert_snapshot!(whole(&mut pair), @r"
       0.000 > SYN                     cwnd 2.00
      50.000 < SYN ack 1
     100.000 > ack 1                   cwnd 2.00
     100.000 > FIN data 1 LOST         cwnd 2.00
    1100.000 client timer
    1100.000 > FIN data 1              cwnd 1.00 ssthresh 2.00
    1150.000 < ack b1462
    1150.000 < FIN ack b1462 LOST
    2150.000 server timer
    2150.000 < FIN ack b1462 LOST
    4150.000 server timer
    4150.000 < FIN ack b1462
    4200.000 > ack b2                  cwnd 1.00 ssthresh 2.00
    ");
    assert!(pair.ends.iter().all(tidegate_sim::tcp::Endpoint::is_closed));
}

/// RFC 6298 (5.7) and RFC 5681 section 3.1, with an initial timeout of 1 s and
/// an initial window of 4: the SYN is sent again after 1 s and 2 s more, then
/// one segment goes out instead of four, and with it lost, its timer takes 3 s
/// (3 100 to 6 100 ms), not the 1 s it began with.
#[test]
fn a_lost_syn_makes_a_careful_start() {
    let config = TcpConfig { initial_rto: Span::seconds(1), ..plain(4) };
    let mut syns = 0;
    let mut pair = pair(&config).transfer(3 * MSS).deciding(move |from, header, number| {
        syns += u32::from(from == CLIENT && header.flags.contains(Flags::SYN));
        let syn_lost = syns <= 2 && header.flags.contains(Flags::SYN);
        let first_lost = from == CLIENT && header.payload > 0 && number == 1;
        if syn_lost || first_lost { Fate::Lose } else { Fate::Pass }
    });
    insta::assert_snapshot!(whole(&mut pair), @r"
       0.000 > SYN LOST                cwnd 4.00
    1000.000 client timer
    1000.000 > SYN LOST                cwnd 4.00
    3000.000 client timer
    3000.000 > SYN                     cwnd 4.00
    3050.000 < SYN ack 1
    3100.000 > ack 1                   cwnd 1.00
    3100.000 > data 1 LOST             cwnd 1.00
    6100.000 client timer
    6100.000 > data 1                  cwnd 1.00 ssthresh 2.00
    6150.000 < ack 2
    6200.000 > data 2                  cwnd 2.00 ssthresh 2.00
    6200.000 > FIN data 3              cwnd 2.00 ssthresh 2.00
    6250.000 < ack 3
    6250.000 < ack b4382
    6250.000 < FIN ack b4382
    6300.000 > ack b2                  cwnd 2.00 ssthresh 2.00
    ");
}

/// The SYN-ACK is lost: the client's timer sends the SYN again after 3 s, which
/// the server answers; that puts off the server's own timer, due at 3 050 ms.
#[test]
fn a_lost_syn_ack_is_sent_again() {
    let mut answers = 0;
    let mut pair = pair(&plain(2)).transfer(MSS).deciding(move |from, header, _| {
        answers += u32::from(from == SERVER && header.flags.contains(Flags::SYN));
        let lost = from == SERVER && header.flags.contains(Flags::SYN) && answers == 1;
        if lost { Fate::Lose } else { Fate::Pass }
    });
    insta::assert_snapshot!(whole(&mut pair), @r"
       0.000 > SYN                     cwnd 2.00
      50.000 < SYN ack 1 LOST
    3000.000 client timer
    3000.000 > SYN                     cwnd 2.00
    3050.000 < SYN ack 1
    3100.000 > ack 1                   cwnd 1.00
    3100.000 > FIN data 1              cwnd 1.00
    3150.000 < ack b1462
    3150.000 < FIN ack b1462
    3200.000 > ack b2                  cwnd 1.00
    ");
}

/// RFC 3168 section 6.1: segments 3 and 4 of a window of 8 are marked. Every
/// acknowledgement from 3 on carries ECE until CWR has come. At 200 ms the
/// first two open the window to 10; the third finds 3 to 12 in flight, and
/// halves the window once, to 5: nothing else in this round trip does. The
/// first new segment after it carries CWR, which ends the echo.
#[test]
fn a_mark_halves_the_window_once() {
    let config = TcpConfig { ecn: true, ..plain(8) };
    let mut pair = pair(&config).upload(24 * MSS).deciding(|from, _, number| {
        if from == CLIENT && (3..=4).contains(&number) { Fate::Mark } else { Fate::Pass }
    });
    pair.run_until(millis(520));
    insta::assert_snapshot!(std::mem::take(&mut pair.trace), @r"
      0.000 > SYN ECE CWR             cwnd 8.00
     50.000 < SYN ECE ack 1
    100.000 > ack 1                   cwnd 8.00
    100.000 > data 1                  cwnd 8.00
    100.000 > data 2                  cwnd 8.00
    100.000 > data 3 MARKED           cwnd 8.00
    100.000 > data 4 MARKED           cwnd 8.00
    100.000 > data 5                  cwnd 8.00
    100.000 > data 6                  cwnd 8.00
    100.000 > data 7                  cwnd 8.00
    100.000 > data 8                  cwnd 8.00
    150.000 < ack 2
    150.000 < ack 3
    150.000 < ECE ack 4
    150.000 < ECE ack 5
    150.000 < ECE ack 6
    150.000 < ECE ack 7
    150.000 < ECE ack 8
    150.000 < ECE ack 9
    200.000 > data 9                  cwnd 9.00
    200.000 > data 10                 cwnd 9.00
    200.000 > data 11                 cwnd 10.00
    200.000 > data 12                 cwnd 10.00
    200.000 > CWR data 13             cwnd 5.00 ssthresh 5.00
    250.000 < ECE ack 10
    250.000 < ECE ack 11
    250.000 < ECE ack 12
    250.000 < ECE ack 13
    250.000 < ack 14
    300.000 > data 14                 cwnd 5.00 ssthresh 5.00
    300.000 > data 15                 cwnd 5.00 ssthresh 5.00
    300.000 > data 16                 cwnd 5.00 ssthresh 5.00
    300.000 > data 17                 cwnd 5.00 ssthresh 5.00
    300.000 > data 18                 cwnd 5.20 ssthresh 5.00
    350.000 < ack 15
    350.000 < ack 16
    350.000 < ack 17
    350.000 < ack 18
    350.000 < ack 19
    400.000 > data 19                 cwnd 5.39 ssthresh 5.00
    400.000 > data 20                 cwnd 5.57 ssthresh 5.00
    400.000 > data 21                 cwnd 5.75 ssthresh 5.00
    400.000 > data 22                 cwnd 5.92 ssthresh 5.00
    400.000 > data 23                 cwnd 6.09 ssthresh 5.00
    400.000 > data 24                 cwnd 6.09 ssthresh 5.00
    450.000 < ack 20
    450.000 < ack 21
    450.000 < ack 22
    450.000 < ack 23
    450.000 < ack 24
    450.000 < ack 25
    ");
    assert_eq!(pair.ends[CLIENT].statistics().ecn_reductions, 1);
    assert_eq!(pair.ends[CLIENT].statistics().retransmissions, 0);
}

/// RFC 5681 section 4.1: after more than a timeout without sending, the window
/// of 4 (2 and the two acknowledgements at 200 ms; those at 300 ms find it
/// unused) is back at the initial 2.
#[test]
fn an_idle_connection_starts_again() {
    let mut pair = pair(&plain(2)).upload(6 * MSS);
    pair.run_until(millis(1_000));
    assert_eq!(pair.ends[CLIENT].congestion_window(), 4 * MSS);
    pair.now = millis(3_000);
    pair.trace.clear();
    pair.ends[CLIENT].write(6 * MSS);
    pair.poll(CLIENT);
    pair.run_until(millis(3_099));
    insta::assert_snapshot!(std::mem::take(&mut pair.trace), @r"
    3000.000 > data 7                  cwnd 2.00
    3000.000 > data 8                  cwnd 2.00
    3050.000 < ack 8
    3050.000 < ack 9
    ");
}

/// Of a first window of two, the first segment is acknowledged at once and the
/// second with the third, so that the window is 3 after 200 ms and 4 after 300.
#[test]
fn the_first_segment_may_be_acknowledged_at_once() {
    let config = TcpConfig { ack_first_segment: true, ..TcpConfig::papers() };
    let mut pair = pair(&config).upload(6 * MSS);
    insta::assert_snapshot!(data_until(&mut pair, 310), @r"
    100.000 > ack 1                   cwnd 2.00
    100.000 > data 1                  cwnd 2.00
    100.000 > data 2                  cwnd 2.00
    150.000 < ack 2
    200.000 > data 3                  cwnd 3.00
    200.000 > data 4                  cwnd 3.00
    250.000 < ack 4
    300.000 > data 5                  cwnd 4.00
    300.000 > data 6                  cwnd 4.00
    ");
}

/// Retransmissions are not idleness. With 400 ms of round trip, segments 4 to 7
/// go out at 1 200 ms and are lost; the timer sends 4 at 2 200 ms, 5 and 6
/// follow at 2 600 and 7 at 3 000 ms. What is written at 3 500 ms finds the
/// window as the repair has left it, not cut back to the initial 1, although
/// the last new data went out 2 300 ms ago and the timeout is 2 s.
#[test]
fn a_repair_is_not_idleness() {
    let mut pair = pair(&plain(1)).upload(7 * MSS).losing(&[4, 5, 6, 7]);
    pair.delay = Span::millis(200);
    pair.run_until(millis(3_500));
    assert_eq!(pair.ends[CLIENT].acknowledged(), 7 * MSS);
    assert_eq!(pair.ends[CLIENT].retransmission_timeout(), Span::seconds(2));
    let repaired = pair.ends[CLIENT].congestion_window();
    assert!(repaired >= 2 * MSS);
    pair.now = millis(3_500);
    pair.ends[CLIENT].write(3 * MSS);
    pair.poll(CLIENT);
    assert_eq!(pair.ends[CLIENT].congestion_window(), repaired);
}

/// A window that is not used does not grow: 1 segment at a time, 20 times.
#[test]
fn an_unused_window_does_not_grow() {
    let mut pair = pair(&plain(4)).upload(0);
    for round in 1..=20 {
        pair.ends[CLIENT].write(MSS);
        pair.now = pair.now.max(millis(round * 200));
        pair.poll(CLIENT);
        pair.run_until(millis(round * 200 + 150));
    }
    assert_eq!(pair.ends[SERVER].delivered(), 20 * MSS);
    assert_eq!(pair.ends[CLIENT].congestion_window(), 4 * MSS);
}

/// The same transfer with losses from just below the wrap of either end's
/// numbers looks the same in every line.
#[test]
fn numbers_may_wrap() {
    for config in [plain(8), selective(8), timed(8)] {
        let trace = |isn| {
            let mut pair = Pair::with_numbers(config.clone(), config.clone(), isn)
                .transfer(40 * MSS)
                .losing(&[3, 9, 10, 15, 22]);
            whole(&mut pair)
        };
        let near = trace([1, 1]);
        assert_eq!(trace([u32::MAX - 20_000, u32::MAX]), near);
        assert_eq!(trace([u32::MAX, u32::MAX - 1]), near);
        assert_eq!(trace([1 << 31, (1 << 31) - 30_000]), near);
    }
}

/// RFC 9293 section 3.8.6.3 with another count, and without delay.
#[test]
fn acknowledgements_are_as_many_as_asked_for() {
    let sent = |delayed_ack| {
        let config = TcpConfig { delayed_ack, initial_window: 16, ..TcpConfig::papers() };
        let mut pair = Pair::new(config.clone(), config).upload(16 * MSS);
        pair.run();
        // Without the SYN-ACK.
        pair.ends[SERVER].statistics().segments_sent - 1
    };
    let every = |segments| Some(DelayedAck { segments, timeout: Span::millis(200) });
    assert_eq!(sent(None), 16);
    assert_eq!(sent(every(2)), 8);
    assert_eq!(sent(every(4)), 4);
}

/// Gives up after the retries that are configured, with the back-off of
/// RFC 6298: the SYN at 0, 3, 9 s; data after 1, 2, 4 s.
#[test]
fn retries_come_to_an_end() {
    let config = TcpConfig { syn_retries: 2, data_retries: 3, ..plain(2) };
    let mut silent = pair(&config).transfer(MSS).deciding(|_, _, _| Fate::Lose);
    silent.run();
    assert!(silent.ends[CLIENT].has_failed());
    assert_eq!(silent.ends[CLIENT].statistics().segments_sent, 3);
    assert_eq!(silent.now, Time(21_000_000_000));

    let mut broken = pair(&config)
        .transfer(MSS)
        .deciding(|_, header, _| if header.payload > 0 { Fate::Lose } else { Fate::Pass });
    broken.run();
    assert!(broken.ends[CLIENT].has_failed() && !broken.ends[CLIENT].is_closed());
    assert_eq!(broken.ends[CLIENT].statistics().data_segments_sent, 4);
    // Sent at 0.1 s, then the timers of 1, 2, 4 and 8 s.
    assert_eq!(broken.now, millis(15_100));
    // A late segment is answered with a reset, which ends the server too.
    broken.ends[SERVER].write(1);
    broken.decide = Box::new(|_, _, _| Fate::Pass);
    broken.poll(SERVER);
    broken.run();
    assert!(broken.ends[SERVER].has_failed());
}

/// RFC 5681 equation 4: the threshold is set when a segment times out for the
/// first time, 8 / 2 = 4, and held when the same one times out again.
#[test]
fn a_second_timeout_keeps_the_threshold() {
    let mut pair = pair(&plain(8)).transfer(8 * MSS).losing(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    pair.run_until(millis(3_200));
    assert_eq!(pair.ends[CLIENT].statistics().timeouts, 2);
    assert_eq!(pair.ends[CLIENT].slow_start_threshold(), 4 * MSS);
    assert_eq!(pair.ends[CLIENT].congestion_window(), MSS);
}

/// RFC 6582 section 4, the impatient variant: only the first partial
/// acknowledgement sets the timer anew. Ten losses in a window of 16 take ten
/// round trips by NewReno; the first partial acknowledgement comes at 300 ms,
/// so at 1 300 ms the timer ends it.
#[test]
fn a_long_recovery_ends_in_a_timeout() {
    let mut pair =
        pair(&plain(16)).transfer(40 * MSS).losing(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    pair.run_until(millis(1_299));
    assert_eq!(pair.ends[CLIENT].statistics().timeouts, 0);
    pair.run_until(millis(1_301));
    assert_eq!(pair.ends[CLIENT].statistics().timeouts, 1);
    assert!(pair.run().ends[CLIENT].is_closed());
}

/// A mark and a loss among the same segments reduce the window once
/// (RFC 3168 section 6.1.2): 3 is marked and 8 lost. The mark finds 10 in
/// flight and leaves 5; the recovery that follows does not halve that again.
#[test]
fn a_mark_and_a_loss_reduce_the_window_once() {
    let config = TcpConfig { ecn: true, ..plain(8) };
    let mut pair = pair(&config).upload(40 * MSS).deciding(|from, header, number| {
        match (from == CLIENT && header.payload > 0, number) {
            (true, 3) => Fate::Mark,
            (true, 8) => Fate::Lose,
            _ => Fate::Pass,
        }
    });
    pair.run_until(millis(450));
    let client = &pair.ends[CLIENT];
    assert_eq!(client.statistics().ecn_reductions, 1);
    assert_eq!(client.statistics().fast_recoveries, 1);
    assert_eq!(client.slow_start_threshold(), 5 * MSS);
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

/// RFC 8985 section 6.2, step 4, and RFC 2883. Segment 3 is 20 ms late, behind
/// five others: the third SACK finds no reordering before and sends it again at
/// 200 ms. Its arrival shows reordering, so 12, as late, is waited for: 20 ms
/// are less than a quarter of the round trip. The second 3 brings a duplicate
/// report: the first block lies below the acknowledgement.
#[test]
fn reordering_is_learnt() {
    let mut pair = pair(&timed(8)).transfer(30 * MSS).deciding(|from, header, number| {
        let late = from == CLIENT && header.payload > 0 && (number == 3 || number == 20);
        if late { Fate::Delay(Span::millis(20)) } else { Fate::Pass }
    });
    let trace = whole(&mut pair);
    assert_eq!(pair.ends[CLIENT].statistics().retransmissions, 1, "{trace}");
    assert_eq!(pair.ends[CLIENT].statistics().fast_recoveries, 1, "{trace}");
    assert!(trace.contains("< ack 15 sack 3\n"), "{trace}");
}

/// RFC 3465: with two segments per acknowledgement, delayed acknowledgements
/// double the window all the same, 2, 4, 8 (section 2.2); after a timeout an
/// acknowledgement adds one segment, whatever it covers (section 2.3).
#[test]
fn byte_counting_makes_up_for_delayed_acknowledgements() {
    let config = TcpConfig { slow_start_limit: 2, ..TcpConfig::papers() };
    let mut quick = pair(&config).upload(100 * MSS);
    for (at, window) in [(150, 2), (250, 4), (350, 8)] {
        quick.run_until(millis(at));
        assert_eq!(quick.ends[CLIENT].congestion_window(), window * MSS, "at {at} ms");
    }
    let start = TcpConfig { initial_window: 16, ..config };
    let first: Vec<u64> = (1..=16).collect();
    let mut slow = pair(&start).upload(100 * MSS).losing(&first);
    // Sent again at 1 100 ms; acknowledged by the delayed timer at 1 350, at
    // 1 400 two go out, and what they bring at 1 500 is one segment.
    for (at, window) in [(1_150, 1), (1_450, 2), (1_550, 3)] {
        slow.run_until(millis(at));
        assert_eq!(slow.ends[CLIENT].congestion_window(), window * MSS, "at {at} ms");
    }
}

/// RFC 5961 section 3: a reset with the number that is expected ends the
/// connection; one elsewhere in the window is answered; others are ignored.
#[test]
fn only_an_exact_reset_resets() {
    for (distance, answers, fails) in [(0, 0, true), (1, 1, false), (1 << 30, 0, false)] {
        let mut pair = pair(&plain(2)).upload(4 * MSS);
        pair.run();
        let reset = tidegate_sim::tcp::Header {
            sequence: (tcp::ISN[CLIENT] + 1 + 4 * MSS as u32).wrapping_add(distance),
            flags: Flags::RST,
            ..Default::default()
        };
        let mut out = Vec::new();
        pair.ends[SERVER].on_segment(pair.now, &reset, false, &mut out);
        assert_eq!((out.len(), pair.ends[SERVER].has_failed()), (answers, fails), "{distance}");
    }
}
