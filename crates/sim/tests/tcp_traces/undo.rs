//! Losses that were none, and what they have cost undone (RFC 3522, 3708, 5682).

use tidegate_core::Span;
use tidegate_sim::tcp::TcpConfig;
use tidegate_sim::tcp::congestion::LINUX_RENO;

use crate::tcp::{CLIENT, Fate, Pair};
use crate::{MSS, data_until, millis, pair, selective};

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

/// Without timestamps the first acknowledgement may be that of the retransmission: it
/// releases two new segments. The second one is of segment 2, which was sent once.
#[test]
fn forward_data_shows_that_a_timeout_was_too_early() {
    let mut pair = spike(&undoing(4), 12);
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

/// Without new data what is lost goes out at once.
#[test]
fn without_new_data_losses_are_repaired_at_once() {
    let mut pair = pair(&undoing(4)).upload(4 * MSS).losing(&[1, 2, 3, 4]);
    insta::assert_snapshot!(data_until(&mut pair, 1_401), @r"
     100.000 > ack 1                   cwnd 4.00
     100.000 > data 1 LOST             cwnd 4.00
     100.000 > data 2 LOST             cwnd 4.00
     100.000 > data 3 LOST             cwnd 4.00
     100.000 > data 4 LOST             cwnd 4.00
    1100.000 client timer
    1100.000 > data 1                  cwnd 1.00 ssthresh 2.00
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
