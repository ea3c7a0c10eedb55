//! How the window grows, and how segments are acknowledged.

use tidegate_core::{Bytes, Span};
use tidegate_sim::tcp::{DelayedAck, TcpConfig};

use super::{MSS, data_until, millis, pair, plain, whole};
use crate::pair::{CLIENT, Fate, Pair, SERVER};

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

/// A window that is not used does not grow: one segment is written at a time, 20
/// times.
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

/// RFC 9293 section 3.8.6.3 with other counts, and without delay.
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
