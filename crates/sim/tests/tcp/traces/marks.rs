//! Accurate ECN (RFC 9768), and what a scalable controller does with it.

use std::cell::Cell;
use std::rc::Rc;

use tidegate_core::{Ecn, Span};
use tidegate_sim::tcp::congestion::Entry;
use tidegate_sim::tcp::{DelayedAck, Endpoint, Flags, TcpConfig};

use super::{MSS, millis, pair, plain, selective};
use crate::pair::controllers::{Heard, counting, take_log};
use crate::pair::{CLIENT, Fate, Pair, SERVER};

fn dctcp(initial_window: u32) -> TcpConfig {
    let congestion = Entry::named("dctcp").expect("it is listed");
    TcpConfig { congestion, ..plain(initial_window) }
}

/// The SYN asks by AE, ECE and CWR, and the answer, ECE and CWR, says that it came with
/// ECT(1). The counter begins at five, AE and ECE; the marks of segments 3 and 4 make it
/// six, AE and CWR, and then seven. The first acknowledgement ends a round without marks,
/// which takes the share from one to 15/16. The third finds a window of 10 and takes 4.7, of
/// which four are whole. Nothing grows until segment 12 is acknowledged, the last one sent
/// before that.
#[test]
fn each_mark_is_counted_and_the_window_reduced_once() {
    let mut pair = pair(&dctcp(8)).upload(20 * MSS).deciding(|from, _, number| {
        if from == CLIENT && (3..=4).contains(&number) { Fate::Mark } else { Fate::Pass }
    });
    pair.run_until(millis(320));
    insta::assert_snapshot!(std::mem::take(&mut pair.trace), @r"
      0.000 > SYN AE ECE CWR          cwnd 8.00
     50.000 < SYN ECE CWR ack 1
    100.000 > AE ECE ack 1            cwnd 8.00
    100.000 > AE ECE data 1           cwnd 8.00
    100.000 > AE ECE data 2           cwnd 8.00
    100.000 > AE ECE data 3 MARKED    cwnd 8.00
    100.000 > AE ECE data 4 MARKED    cwnd 8.00
    100.000 > AE ECE data 5           cwnd 8.00
    100.000 > AE ECE data 6           cwnd 8.00
    100.000 > AE ECE data 7           cwnd 8.00
    100.000 > AE ECE data 8           cwnd 8.00
    150.000 < AE ECE ack 2
    150.000 < AE ECE ack 3
    150.000 < AE CWR ack 4
    150.000 < AE ECE CWR ack 5
    150.000 < AE ECE CWR ack 6
    150.000 < AE ECE CWR ack 7
    150.000 < AE ECE CWR ack 8
    150.000 < AE ECE CWR ack 9
    200.000 > AE ECE data 9           cwnd 9.00
    200.000 > AE ECE data 10          cwnd 9.00
    200.000 > AE ECE data 11          cwnd 10.00
    200.000 > AE ECE data 12          cwnd 10.00
    200.000 > AE ECE data 13          cwnd 6.00 ssthresh 6.00
    200.000 > AE ECE data 14          cwnd 6.00 ssthresh 6.00
    250.000 < AE ECE CWR ack 10
    250.000 < AE ECE CWR ack 11
    250.000 < AE ECE CWR ack 12
    250.000 < AE ECE CWR ack 13
    250.000 < AE ECE CWR ack 14
    250.000 < AE ECE CWR ack 15
    300.000 > AE ECE data 15          cwnd 6.00 ssthresh 6.00
    300.000 > AE ECE data 16          cwnd 6.00 ssthresh 6.00
    300.000 > AE ECE data 17          cwnd 6.00 ssthresh 6.00
    300.000 > AE ECE data 18          cwnd 6.00 ssthresh 6.00
    300.000 > AE ECE data 19          cwnd 6.00 ssthresh 6.00
    300.000 > AE ECE data 20          cwnd 6.00 ssthresh 6.00
    ");
}

/// Whoever does not count marks gets ECN as in RFC 3168 at most, of which a scalable
/// controller makes nothing: no segment says that it could be marked.
#[test]
fn without_accurate_ecn_a_scalable_sender_asks_for_no_marks() {
    for (client, server) in [
        (dctcp(4), TcpConfig { ecn: true, ..plain(4) }),
        (TcpConfig { ecn: true, ..plain(4) }, dctcp(4)),
        (dctcp(4), plain(4)),
        (plain(4), dctcp(4)),
    ] {
        let mut pair = Pair::new(client, server).transfer(10 * MSS);
        pair.observe = true;
        pair.run_until(millis(2_000));
        assert!(pair.ends.iter().all(Endpoint::is_closed));
        assert!(!pair.ends[CLIENT].ecn_capable());
        let synchronized =
            pair.observed_sent.iter().filter(|(_, header)| !header.flags.contains(Flags::SYN));
        for (_, header) in synchronized {
            assert_eq!((header.ecn, header.flags.contains(Flags::ECE)), (Ecn::NotEct, false));
        }
    }
}

/// All that a scalable sender sends is in one queue: SYN, data, data sent again, and
/// acknowledgements.
#[test]
fn everything_says_ect1() {
    let mut pair = pair(&dctcp(4)).transfer(10 * MSS).losing(&[2]);
    pair.observe = true;
    pair.run_until(millis(5_000));
    assert!(pair.ends[CLIENT].is_closed());
    assert!(pair.ends[CLIENT].statistics().retransmissions > 0);
    assert!(pair.observed_sent.iter().all(|(_, header)| header.ecn == Ecn::Ect1));
}

/// How many marks the sender hears of, when so many of each hundred segments are marked and
/// every `lost`-th acknowledgement is lost.
fn heard(marked: u64, lost: u64, delayed: bool) -> (u64, u64) {
    let delayed_ack = delayed.then_some(DelayedAck { segments: 2, timeout: Span::millis(40) });
    let config = TcpConfig { congestion: counting(), delayed_ack, ..selective(10) };
    let mut acknowledgements = 0_u64;
    let count = Rc::new(Cell::new(0));
    let marks = count.clone();
    let mut pair = pair(&config).upload(600 * MSS).deciding(move |from, header, number| {
        if from == SERVER {
            acknowledgements += 1;
            let is_lost = header.payload == 0
                && acknowledgements > 5
                && acknowledgements.is_multiple_of(lost);
            return if is_lost { Fate::Lose } else { Fate::Pass };
        }
        // Spread, and not in step with the acknowledgements.
        if header.payload > 0 && number * 37 % 100 < marked {
            marks.set(marks.get() + 1);
            return Fate::Mark;
        }
        Fate::Pass
    });
    pair.traced = false;
    take_log();
    pair.run_until(millis(20_000));
    assert_eq!(pair.ends[CLIENT].acknowledged(), 600 * MSS);
    let told = take_log().into_iter().map(|heard| match heard {
        Heard::Ack(ack) => ack.marked / MSS,
        _ => 0,
    });
    (told.sum(), count.get())
}

/// None is lost and none is made up, whatever the share, the delay of acknowledgements
/// and the loss of some.
#[test]
fn the_sender_hears_of_each_mark_once() {
    for marked in [1, 10, 50, 99] {
        for lost in [u64::MAX, 7, 3] {
            for delayed in [false, true] {
                let (told, marks) = heard(marked, lost, delayed);
                assert!(marks > 0);
                assert_eq!(told, marks, "{marked}% of marks, one of {lost} lost, {delayed}");
            }
        }
    }
}
