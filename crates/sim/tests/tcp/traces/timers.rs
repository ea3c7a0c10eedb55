//! Timeouts, back-off and window probes.

use tidegate_core::{Bytes, Span, Time};
use tidegate_sim::tcp::{DelayedAck, TcpConfig};

use super::{MSS, between, data_until, millis, pair, plain, timed, whole};
use crate::pair::{CLIENT, Fate, Pair, SERVER};

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

/// Linux's wheel of timers with ticks of 4 ms: segment 2 is lost three times, as above.
/// The timer of 1 s from 200 ms on is 250 ticks from tick 50, in a slot of 8 ticks that
/// ends at tick 304, which is 1 216 ms. 2 s are 500 ticks from there: a slot of 8 again,
/// until tick 808. 4 s are 1 000 ticks, for which slots are 64 long: until tick 1 856.
#[test]
fn timeouts_fire_at_the_ticks_of_the_host() {
    let config = TcpConfig { timer_tick: Span::millis(4), ..plain(2) };
    let mut pair = pair(&config).transfer(6 * MSS).losing(&[2, 5, 6]);
    for (count, at) in (1..).zip([1_216, 3_232, 7_424]) {
        pair.run_until(millis(at - 1));
        assert_eq!(pair.ends[CLIENT].statistics().timeouts, count - 1, "before {at} ms");
        pair.run_until(millis(at));
        assert_eq!(pair.ends[CLIENT].statistics().timeouts, count, "at {at} ms");
    }
}

/// The same wheel has the shorter timers, which are a slot of one tick late. The report of
/// segment 3 comes in tick 50, and a quarter of the round trip is 7 ticks begun: the
/// reordering window is over at the end of tick 57, at 232 ms. The probe of a lost tail is
/// due 50 ticks after tick 50, and leaves at 404 ms.
#[test]
fn reordering_and_probes_wait_for_the_ticks_of_the_host() {
    let config = TcpConfig { timer_tick: Span::millis(4), ..timed(4) };
    let mut reordered = pair(&config).upload(4 * MSS).losing(&[2]);
    insta::assert_snapshot!(data_until(&mut reordered, 300), @r"
    100.000 > ack 1                   cwnd 4.00
    100.000 > data 1                  cwnd 4.00
    100.000 > data 2 LOST             cwnd 4.00
    100.000 > data 3                  cwnd 4.00
    100.000 > data 4                  cwnd 4.00
    150.000 < ack 2
    150.000 < ack 2 sack 3
    150.000 < ack 2 sack 3-4
    232.000 client timer
    232.000 > data 2                  cwnd 1.00 ssthresh 2.00
    282.000 < ack 5
    ");
    let mut tail = pair(&config).upload(4 * MSS).losing(&[3, 4]);
    insta::assert_snapshot!(between(&mut tail, 151, 500), @r"
    404.000 client timer
    404.000 > data 4                  cwnd 4.00
    454.000 < ack 3 sack 4
    ");
}

/// What comes in at 150 ms, in the middle of tick 37, is acknowledged 40 ms later at the
/// earliest: at the end of tick 47, at 192 ms. So is, with quick acknowledgements, the 17th
/// of a flight; until then each is acknowledged at once.
#[test]
fn delayed_acknowledgements_wait_for_the_ticks_of_the_host() {
    let delayed_ack = Some(DelayedAck { segments: 2, timeout: Span::millis(40) });
    let config = TcpConfig { timer_tick: Span::millis(4), delayed_ack, ..plain(17) };
    insta::assert_snapshot!(data_until(&mut pair(&config).upload(MSS), 300), @r"
    100.000 > ack 1                   cwnd 17.00
    100.000 > data 1                  cwnd 17.00
    192.000 server timer
    192.000 < ack 2
    ");
    let quick = TcpConfig { quick_acks: true, ..config };
    let mut pair = pair(&quick).upload(30 * MSS);
    insta::assert_snapshot!(between(&mut pair, 151, 199), @r"
    192.000 server timer
    192.000 < ack 18
    ");
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

/// With four linear timeouts, as in Linux, a timeout of 3 s sends SYNs at 0, 3, 6, 9, 12
/// and 15 s, and the fifth doubles it: 21 s.
#[test]
fn the_first_timeouts_of_a_syn_are_linear() {
    let config = TcpConfig { linear_syn_timeouts: 4, syn_retries: 2, ..plain(2) };
    let mut silent = pair(&config).transfer(MSS).deciding(|_, _, _| Fate::Lose);
    silent.run_until(millis(20_999));
    assert_eq!(silent.ends[CLIENT].statistics().segments_sent, 6);
    silent.run();
    assert_eq!(silent.ends[CLIENT].statistics().segments_sent, 7);
    assert!(silent.ends[CLIENT].has_failed());
    // 6 s after the fifth retransmission, and 12 s after the sixth.
    assert_eq!(silent.now, millis(33_000));
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
