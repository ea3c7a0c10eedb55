//! Detection by time and tail loss probes: RACK-TLP (RFC 8985).

use tidegate_core::Span;
use tidegate_sim::tcp::{Flags, TcpConfig};

use super::{MSS, data_until, millis, pair, selective, timed, whole};
use crate::pair::{CLIENT, Fate, SERVER};

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

/// When the client sent something, and its timeouts, until 3 s. It writes a segment at first and
/// at 900 ms, of which that is lost.
fn two_writes(
    timestamps_option: bool,
    mut is_lost: impl FnMut(usize, u64) -> bool + 'static,
) -> (Vec<String>, u32) {
    let config = TcpConfig { timestamps_option, ..timed(10) };
    let mut pair = pair(&config).upload(MSS).deciding(move |from, header, number| {
        let counts = (header.payload > 0) == (from == CLIENT) && !header.flags.contains(Flags::SYN);
        if counts && is_lost(from, number) { Fate::Lose } else { Fate::Pass }
    });
    pair.run_until(millis(900));
    pair.now = millis(900);
    pair.ends[CLIENT].write(MSS);
    pair.poll(CLIENT);
    pair.run_until(millis(3_000));
    let data = pair.trace.lines().filter(|line| line.contains("> data"));
    let times = data.map(|line| line.trim().split('.').next().unwrap_or_default().to_owned());
    (times.collect(), pair.ends[CLIENT].statistics().timeouts)
}

/// A probe follows only a measurement (section 7.3), and timestamps make the answer to a probe
/// one. The first acknowledgement is lost, and the probe at 500 ms brings a report of a
/// duplicate at 600 ms, with the original's timestamp: nothing had been lost, and SRTT is
/// 7/8 * 100 + 500 / 8 = 150 ms. Of the write at 900 ms there is another probe, 2 * 150 + 200 ms
/// later, or else the timeout of 1 s.
#[test]
fn the_answer_to_a_probe_is_a_measurement_by_its_timestamp() {
    let run = |timestamps| {
        let mut answers = 0;
        two_writes(timestamps, move |from, number| {
            answers += u64::from(from == SERVER);
            (from, answers) == (SERVER, 1) || (from, number) == (CLIENT, 3)
        })
    };
    let times = |last: &str| ["100", "500", "900", last].map(String::from).to_vec();
    assert_eq!(run(true), (times("1400"), 0));
    assert_eq!(run(false), (times("1900"), 1));
}

/// The probe of the first write has repaired a loss and is not over, so that there is none of the
/// second. At 1 300 ms it would have been sent; the timeout is still at 1 900 ms.
#[test]
fn a_probe_that_is_not_sent_does_not_put_off_the_timeout() {
    for timestamps in [false, true] {
        let (times, timeouts) =
            two_writes(timestamps, |from, number| from == CLIENT && (number == 1 || number == 3));
        assert_eq!(
            (times, timeouts),
            (["100", "500", "900", "1900"].map(String::from).to_vec(), 1)
        );
    }
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
