//! Losses that were none, and what they have cost undone (RFC 3522, 3708, 5682).

use tidegate_core::Span;
use tidegate_sim::tcp::TcpConfig;
use tidegate_sim::tcp::congestion::LINUX_RENO;

use super::{MSS, between, data_until, millis, pair, selective, timed};
use crate::pair::{CLIENT, Fate, Pair};

/// Linux's Reno, which restores its window.
fn undoing(initial_window: u32) -> TcpConfig {
    TcpConfig { congestion: LINUX_RENO, undo: true, ..selective(initial_window) }
}

/// A queue of 1.5 s stands on the path from 100 ms on: what leaves before 1.6 s arrives in
/// its order from 1 650 ms on. The timer of 1 s runs out at 1 100 ms.
fn spike(config: &TcpConfig, segments: u64) -> Pair {
    pair(config).upload(segments * MSS).deciding(|from, header, number| {
        if from != CLIENT || header.payload == 0 {
            Fate::Pass
        } else if number <= 4 {
            Fate::Delay(Span::millis(1_500))
        } else if number == 5 {
            Fate::Delay(Span::millis(500))
        } else {
            Fate::Pass
        }
    })
}

/// The acknowledgement of the first original echoes the timestamp of 100 ms, and the first
/// retransmission left at 1 100 ms: at once the window is 4 again, and 5 for what is
/// acknowledged. Nothing else is sent again.
#[test]
fn a_timestamp_shows_that_a_timeout_was_too_early() {
    let config = TcpConfig { timestamps_option: true, ..undoing(4) };
    let mut pair = spike(&config, 12);
    insta::assert_snapshot!(data_until(&mut pair, 1_701), @r"
     100.000 > ack 1                   cwnd 4.00
     100.000 > data 1 DELAYED 1.5 s    cwnd 4.00
     100.000 > data 2 DELAYED 1.5 s    cwnd 4.00
     100.000 > data 3 DELAYED 1.5 s    cwnd 4.00
     100.000 > data 4 DELAYED 1.5 s    cwnd 4.00
    1100.000 client timer
    1100.000 > data 1 DELAYED 500 ms   cwnd 1.00 ssthresh 2.00
    1650.000 < ack 2
    1650.000 < ack 3
    1650.000 < ack 4
    1650.000 < ack 5
    1650.000 < ack 5 sack 1
    1700.000 > data 5                  cwnd 5.00
    1700.000 > data 6                  cwnd 5.00
    1700.000 > data 7                  cwnd 6.00
    1700.000 > data 8                  cwnd 6.00
    1700.000 > data 9                  cwnd 7.00
    1700.000 > data 10                 cwnd 7.00
    1700.000 > data 11                 cwnd 8.00
    1700.000 > data 12                 cwnd 8.00
    ");
    assert_eq!(pair.ends[CLIENT].statistics().retransmissions, 1);
}

/// The same spike without timestamps, after the timeout: the first acknowledgement may be
/// that of the retransmission, and releases two new segments. The second one is of segment
/// 2, which was sent once.
#[test]
fn forward_data_shows_that_a_timeout_was_too_early() {
    let mut pair = spike(&undoing(4), 12);
    insta::assert_snapshot!(between(&mut pair, 1_101, 1_701), @r"
    1650.000 < ack 2
    1650.000 < ack 3
    1650.000 < ack 4
    1650.000 < ack 5
    1650.000 < ack 5 sack 1
    1700.000 > data 5                  cwnd 2.00 ssthresh 2.00
    1700.000 > data 6                  cwnd 2.00 ssthresh 2.00
    1700.000 > data 7                  cwnd 5.00
    1700.000 > data 8                  cwnd 6.00
    1700.000 > data 9                  cwnd 6.00
    1700.000 > data 10                 cwnd 7.00
    1700.000 > data 11                 cwnd 7.00
    ");
    assert_eq!(pair.ends[CLIENT].statistics().retransmissions, 1);
}

/// All four are lost. The first acknowledgement after the timeout releases new data, whose
/// report says that the loss was one: what is lost is sent again a round trip later.
#[test]
fn a_real_loss_is_repaired_after_the_new_data() {
    let mut pair = pair(&undoing(4)).upload(12 * MSS).losing(&[1, 2, 3, 4]);
    insta::assert_snapshot!(data_until(&mut pair, 1_401), @r"
     100.000 > ack 1                   cwnd 4.00
     100.000 > data 1 LOST             cwnd 4.00
     100.000 > data 2 LOST             cwnd 4.00
     100.000 > data 3 LOST             cwnd 4.00
     100.000 > data 4 LOST             cwnd 4.00
    1100.000 client timer
    1100.000 > data 1                  cwnd 1.00 ssthresh 2.00
    1150.000 < ack 2
    1200.000 > data 5                  cwnd 2.00 ssthresh 2.00
    1200.000 > data 6                  cwnd 2.00 ssthresh 2.00
    1250.000 < ack 2 sack 5
    1250.000 < ack 2 sack 5-6
    1300.000 > data 2                  cwnd 2.00 ssthresh 2.00
    1300.000 > data 3                  cwnd 2.00 ssthresh 2.00
    1350.000 < ack 3 sack 5-6
    1350.000 < ack 4 sack 5-6
    1400.000 > data 4                  cwnd 2.00 ssthresh 2.00
    1400.000 > data 7                  cwnd 3.00 ssthresh 2.00
    1400.000 > data 8                  cwnd 3.00 ssthresh 2.00
    ");
}

/// The same without new data, after the timeout: what is lost goes out at once.
#[test]
fn without_new_data_losses_are_repaired_at_once() {
    let mut pair = pair(&undoing(4)).upload(4 * MSS).losing(&[1, 2, 3, 4]);
    insta::assert_snapshot!(between(&mut pair, 1_101, 1_401), @r"
    1150.000 < ack 2
    1200.000 > data 2                  cwnd 2.00 ssthresh 2.00
    1200.000 > data 3                  cwnd 2.00 ssthresh 2.00
    1250.000 < ack 3
    1250.000 < ack 4
    1300.000 > data 4                  cwnd 2.00 ssthresh 2.00
    1350.000 < ack 5
    ");
}

/// A lone segment that is late proves nothing by its acknowledgement; the duplicate that
/// the retransmission becomes does (RFC 3708). The threshold is three quarters of the
/// window of before.
#[test]
fn a_duplicate_shows_that_a_timeout_was_too_early() {
    let mut pair = spike(&undoing(4), 1).deciding(|from, header, number| {
        let late = from == CLIENT && header.payload > 0 && number == 1;
        if late { Fate::Delay(Span::millis(1_020)) } else { Fate::Pass }
    });
    pair.run_until(millis(1_201));
    assert_eq!(pair.ends[CLIENT].congestion_window(), 2 * MSS);
    assert_eq!(pair.ends[CLIENT].slow_start_threshold(), 2 * MSS);
    pair.run_until(millis(1_300));
    assert_eq!(pair.ends[CLIENT].congestion_window(), 4 * MSS);
    assert_eq!(pair.ends[CLIENT].statistics().undone_recoveries, 1);
}

/// The same spike without undoing: all that was late is sent again.
#[test]
fn without_undoing_a_late_flight_is_sent_again() {
    let config = TcpConfig { undo: false, timestamps_option: true, ..undoing(4) };
    let mut pair = spike(&config, 12);
    pair.run_until(millis(3_000));
    assert!(pair.ends[CLIENT].statistics().retransmissions >= 3);
    assert_eq!(pair.ends[CLIENT].statistics().undone_recoveries, 0);
}

/// Segments 2 and 3 were reported before the timeout. After it they are outstanding again,
/// as without detection by time reports are forgotten, but that they arrived is no news.
#[test]
fn what_was_reported_before_a_timeout_does_not_show_that_it_was_too_early() {
    let mut pair = pair(&undoing(3)).upload(3 * MSS).losing(&[1]);
    insta::assert_snapshot!(data_until(&mut pair, 1_301), @r"
     100.000 > ack 1                   cwnd 3.00
     100.000 > data 1 LOST             cwnd 3.00
     100.000 > data 2                  cwnd 3.00
     100.000 > data 3                  cwnd 3.00
     150.000 < ack 1 sack 2
     150.000 < ack 1 sack 2-3
    1100.000 client timer
    1100.000 > data 1                  cwnd 1.00 ssthresh 2.00
    1150.000 < ack 4
    ");
    assert_eq!(pair.ends[CLIENT].statistics().undone_recoveries, 0);
}

/// Only the last of six segments is late; the others are lost, and so are the tail loss
/// probe and a copy of segment 4. When that is found lost and the window is reduced for it,
/// the copy of segment 6 is in the network. Its duplicate, reported at 1 620 ms, says that
/// this copy was needless, and nothing of segment 4.
#[test]
fn a_duplicate_of_an_earlier_repair_does_not_undo_a_later_one() {
    let config = TcpConfig { congestion: LINUX_RENO, undo: true, ..timed(6) };
    let mut pair = pair(&config).upload(6 * MSS).deciding(|from, header, number| match number {
        _ if from != CLIENT || header.payload == 0 => Fate::Pass,
        6 => Fate::Delay(Span::millis(1_470)),
        ..=7 | 11 => Fate::Lose,
        _ => Fate::Pass,
    });
    insta::assert_snapshot!(data_until(&mut pair, 2_000), @r"
     100.000 > ack 1                   cwnd 6.00
     100.000 > data 1 LOST             cwnd 6.00
     100.000 > data 2 LOST             cwnd 6.00
     100.000 > data 3 LOST             cwnd 6.00
     100.000 > data 4 LOST             cwnd 6.00
     100.000 > data 5 LOST             cwnd 6.00
     100.000 > data 6 DELAYED 1.47 s   cwnd 6.00
     300.000 client timer
     300.000 > data 6 LOST             cwnd 6.00
    1300.000 client timer
    1300.000 > data 1                  cwnd 1.00 ssthresh 3.00
    1350.000 < ack 2
    1400.000 > data 2                  cwnd 2.00 ssthresh 3.00
    1400.000 > data 3                  cwnd 2.00 ssthresh 3.00
    1450.000 < ack 3
    1450.000 < ack 4
    1500.000 > data 4 LOST             cwnd 3.00 ssthresh 3.00
    1500.000 > data 5                  cwnd 3.00 ssthresh 3.00
    1500.000 > data 6                  cwnd 3.00 ssthresh 3.00
    1550.000 < ack 4 sack 5
    1550.000 < ack 4 sack 5-6
    1600.000 > data 4                  cwnd 2.00 ssthresh 2.00
    1620.000 < ack 4 sack 6 sack 5-6
    1650.000 < ack 7
    ");
    assert_eq!(pair.ends[CLIENT].statistics().undone_recoveries, 0);
}

/// The spike with detection by time: what arrives first are all four originals, by the
/// timestamps that are echoed. The copy of segment 1 left a second ago, and if that had
/// arrived, segments 2 and 3 were overdue.
#[test]
fn detection_by_time_does_not_take_an_original_for_its_copy() {
    let config =
        TcpConfig { congestion: LINUX_RENO, undo: true, timestamps_option: true, ..timed(4) };
    let mut pair = pair(&config).upload(4 * MSS).deciding(|from, header, number| match number {
        _ if from != CLIENT || header.payload == 0 => Fate::Pass,
        ..=4 => Fate::Delay(Span::millis(1_500)),
        5 => Fate::Delay(Span::millis(1_300)),
        _ => Fate::Delay(Span::millis(300)),
    });
    insta::assert_snapshot!(data_until(&mut pair, 2_500), @r"
     100.000 > ack 1                   cwnd 4.00
     100.000 > data 1 DELAYED 1.5 s    cwnd 4.00
     100.000 > data 2 DELAYED 1.5 s    cwnd 4.00
     100.000 > data 3 DELAYED 1.5 s    cwnd 4.00
     100.000 > data 4 DELAYED 1.5 s    cwnd 4.00
     300.000 client timer
     300.000 > data 4 DELAYED 1.3 s    cwnd 4.00
    1300.000 client timer
    1300.000 > data 1 DELAYED 300 ms   cwnd 1.00 ssthresh 2.00
    1650.000 < ack 2
    1650.000 < ack 3
    1650.000 < ack 4
    1650.000 < ack 5
    1650.000 < ack 5 sack 4
    1650.000 < ack 5 sack 1
    ");
}
